"""`--format sarif`: SARIF 2.1.0, within what GitHub's code scanning takes.

Its limits: 25,000 results a run, of which the 5,000 gravest are shown; 1,000 locations a result; 20 tags a rule;
10 MB. A result is one finding at one site, so that its fingerprint follows the site.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from staticfire import __version__
from staticfire.harness.check.base import KINDS, Finding, Kind, Place, Report, Silenced
from staticfire.harness.check.formats.base import dumped, told

NAME = "sarif"
LAST_LINE = False

_LINK: Final = re.compile(r"\[(?=[^\[\]]*\]\()")
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
ACCEPT: Final = "To accept it, put a comment on the call: # staticfire: allow {} -- REASON"
MAX_RESULTS: Final = 5000
MAX_RELATED: Final = 10
MAX_PARAMS: Final = 100
MAX_TEXT: Final = 4000


def render(report: Report) -> str:
    """The document, ending in a newline."""
    open_ = [(finding, place, None) for finding in report.findings for place in finding.sites]
    silent = [(one.finding, place, one) for one in report.silenced for place in one.finding.sites]
    chosen = [*open_, *silent][:MAX_RESULTS]
    prints = _numbered(place for _, place, _ in chosen)
    rules = [KINDS[name] for name in KINDS if any(finding.kind == name for finding, _, _ in chosen)]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "staticfire check",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(kind) for kind in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The folder the check was started in."}}},
        "properties": {
            "engine": report.engine,
            "device": report.device,
            "summary": report.last_line,
            "not_known": {part: dict(reasons) for part, reasons in report.coverage.not_known.items()},
        },
        "results": [
            _result(finding, place, silenced, rules, line_hash)
            for (finding, place, silenced), line_hash in zip(chosen, prints, strict=True)
        ],
    }
    if len(chosen) < len(open_) + len(silent):
        run["properties"]["left_out"] = len(open_) + len(silent) - len(chosen)
    return dumped({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _numbered(places: Iterable[Place]) -> list[str]:
    """Fingerprints as GitHub tells alerts apart: equal ones are counted, in the order of their lines."""
    ranked = sorted(enumerate(places), key=lambda item: (item[1].path, item[1].line, item[1].column, item[0]))
    seen: Counter[str] = Counter()
    made = {}
    for index, place in ranked:
        seen[place.fingerprint] += 1
        made[index] = f"{place.fingerprint}:{seen[place.fingerprint]}"
    return [made[index] for index in range(len(made))]


def _rule(kind: Kind) -> dict[str, Any]:
    return {
        "id": kind.code,
        "name": "".join(part.capitalize() for part in kind.name.split("-")),
        "shortDescription": {"text": kind.summary},
        "fullDescription": {"text": kind.summary},
        "help": {"text": f"{kind.summary} {ACCEPT.format(kind.code)}"},
        "defaultConfiguration": {"level": kind.level},
        "properties": {"tags": ["configuration", kind.name], "precision": "very-high"},
    }


def _result(
    finding: Finding, place: Place, silenced: Silenced | None, rules: list[Kind], line_hash: str
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.facts.code,
        "ruleIndex": rules.index(finding.facts),
        "level": finding.facts.level if place.certainty == "certain" else _lower(finding),
        "message": {"text": _plain(told(finding, place)[:MAX_TEXT])},
        "locations": [_location(place)],
        "partialFingerprints": {"primaryLocationLineHash": line_hash, "staticfire/v1": place.fingerprint},
        "properties": {
            "certainty": place.certainty,
            "params": list(place.params)[:MAX_PARAMS],
            "repairs": [[change.as_json() for change in repair] for repair in finding.repairs],
        },
    }
    if related := list(_related(finding, place)):
        result["relatedLocations"] = related
    if silenced is not None:
        kind = "inSource" if silenced.how == "comment" else "external"
        result["suppressions"] = [{"kind": kind, "justification": silenced.reason}]
    return result


def _plain(text: str) -> str:
    """Text in which nothing is a link: `[…](…)` would be one."""
    return _LINK.sub(r"\\[", text)


def _lower(finding: Finding) -> str:
    return "warning" if finding.facts.level == "error" else finding.facts.level


def _related(finding: Finding, place: Place) -> Iterator[dict[str, Any]]:
    others = islice((other for other in finding.sites if other != place), MAX_RELATED)
    for number, other in enumerate(others, 1):
        yield {"id": number, **_location(other), "message": {"text": "The same cause."}}


def _bytes(path: str) -> bytes:
    """A path as the file system has it, which need not be UTF-8."""
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:
        return path.encode(errors="surrogatepass")


def _location(place: Place) -> dict[str, Any]:
    region = {"startLine": max(1, place.line), "startColumn": max(1, place.column)}
    if place.end_line > place.line:
        region["endLine"] = place.end_line
    if place.end_column and (place.end_line > place.line or place.end_column > place.column):
        region["endColumn"] = place.end_column
    absolute = place.path.startswith("/")
    artifact = {"uri": ("file://" if absolute else "") + quote(_bytes(place.path))}
    if not absolute:
        artifact["uriBaseId"] = "%SRCROOT%"
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}
