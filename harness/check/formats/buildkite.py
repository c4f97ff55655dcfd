"""`--format buildkite`: Markdown for `buildkite-agent annotate`, which takes one mebibyte at most."""

import re
from typing import Final

from staticfire.harness.check.base import Finding, Place, Report
from staticfire.harness.check.formats.base import advice, headline, printed, raised, which
from staticfire.harness.check.messages import one_line, printable

NAME = "buildkite"
LAST_LINE = False

MAX_BYTES: Final = 1 << 20
MAX_SITES: Final = 50
_RESERVE: Final = 4096
_MARKUP: Final = re.compile(r"""[\\`*_{}\[\]()#+!|~:@&<>"'-]""")


def render(report: Report) -> str:
    """The annotation: certain findings open, possible ones folded."""
    report = printed(report)
    certain = [finding for finding in report.findings if finding.certainty == "certain"]
    possible = [finding for finding in report.findings if finding.certainty == "possible"]
    title = f"**{escape(report.last_line)}** ({escape(report.engine)} on {escape(report.device)})\n"
    parts, left = [title], MAX_BYTES - _RESERVE - len(title.encode())
    dropped = 0
    for finding in [*certain, *possible]:
        block = _finding(finding, folded=finding.certainty == "possible")
        size = len(block.encode())
        if size > left:
            dropped += 1
            continue
        parts.append(block)
        left -= size
    if dropped:
        parts.append(f"\n{dropped} more findings do not fit into an annotation.\n")
    return "\n".join(parts)


def _finding(finding: Finding, *, folded: bool) -> str:
    title = f"{finding.kind} {finding.facts.code}: {headline(finding)}"
    lines = [*filter(None, [raised(finding)]), *(f"because {link}" for link in finding.chain), *advice(finding)]
    body = [f"{escape(one_line(line))}<br>" for line in lines]
    body += ["", *(_site(place) for place in finding.sites[:MAX_SITES])]
    if len(finding.sites) > MAX_SITES:
        body.append(f"- and {len(finding.sites) - MAX_SITES} more sites")
    text = "\n".join(body)
    count = f"{len(finding.sites)} site{'' if len(finding.sites) == 1 else 's'}"
    opened = "" if folded else " open"
    summary = f"<b>{finding.certainty}</b> {escape(title)} ({count})"
    return f"<details{opened}><summary>{summary}</summary>\n\n{text}\n\n</details>\n"


def _site(place: Place) -> str:
    about = "; ".join(part for part in (which(place), *place.why) if part)
    return f"- <code>{escape(str(place))}</code>{': ' if about else ''}{escape(one_line(about))}"


def escape(text: str) -> str:
    """Text on one line in which nothing is markup, neither HTML nor Markdown."""
    flat = printable(text).replace("\n", "\\n").replace("\t", " ")
    return _MARKUP.sub(lambda found: f"&#{ord(found.group())};", flat)
