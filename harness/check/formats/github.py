"""`--format github`: workflow commands that GitHub shows as annotations.

GitHub shows ten annotations of each level for a step. One annotation is made for a finding, at its first site; beyond
nine of a level the rest are counted in a tenth. The text of the report follows nowhere: run `--format text` for it.
"""

from collections.abc import Iterator
from typing import Final

from staticfire.harness.check.base import Finding, Report
from staticfire.harness.check.formats.base import headline, listed, printed, told
from staticfire.harness.check.messages import printable
from staticfire.harness.log import safe

NAME = "github"
LAST_LINE = True

COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
MOST: Final = 10
MAX_MESSAGE: Final = 4000


def render(report: Report) -> str:
    """The commands, one a line, then the last line."""
    report = printed(report)
    lines = [line for level in COMMANDS for line in _level(report, level)]
    return "\n".join([*lines, safe(report.last_line)]) + "\n"


def _level(report: Report, level: str) -> Iterator[str]:
    found = [finding for finding in report.findings if finding.level == level]
    shown = found if len(found) <= MOST else found[: MOST - 1]
    yield from (_command(finding) for finding in shown)
    if rest := found[len(shown) :]:
        about = listed((f"{finding.sites[0]}: {headline(finding)}" for finding in rest), 20)
        yield f"::{COMMANDS[level]} title={_property(f'{len(rest)} more findings')}::{_data(about)}"


def _command(finding: Finding) -> str:
    place = finding.sites[0]
    text = told(finding, place)
    others = finding.sites[1:]
    if others:
        text += f"\nalso at {listed((str(other) for other in others), 30)}"
    where: dict[str, object] = {
        "file": printable(place.path),
        "line": place.line,
        "endLine": place.end_line,
        "col": place.column,
    }
    if place.end_column and place.end_line == place.line:
        where["endColumn"] = max(place.column, place.end_column - 1)
    title = f"{finding.certainty}: {finding.kind} {finding.facts.code}"
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in {**where, "title": title}.items())
    return f"::{COMMANDS[finding.level]} {properties}::{_data(text[:MAX_MESSAGE])}"


def _data(text: str) -> str:
    return safe(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
