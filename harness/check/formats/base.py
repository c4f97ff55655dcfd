"""The contract of a format, and words that several of them share."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol

from staticfire.harness.check import command
from staticfire.harness.check.base import Change, Finding, Place, Repair, Report, spell
from staticfire.harness.check.messages import one_line, printable

COMMANDS = frozenset({"RemoteOpenAIServer", "compare_settings", "command", "shell", "yaml"})
"""Forms whose keywords are flags of a command line."""

_BY = {"capacity": "for want of cache blocks"}
_ESCAPES = re.compile(r"\\\\|\\ud[89ab]\w\w\\ud[c-f]\w\w|(\\ud[89a-f]\w\w)")
"""In JSON: a backslash, a pair of surrogates, or half of one."""


class Format(Protocol):
    """One format, as a module with these names.

    Attributes:
        NAME: As `--format` takes it.
        LAST_LINE: Whether the text ends with the report's last line; the others leave it to standard error.
    """

    NAME: str
    LAST_LINE: bool

    def render(self, report: Report) -> str:
        """The whole text."""
        ...


def printed(report: Report) -> Report:
    """The report with every text as it can be shown: nothing in it steers a terminal or reorders what is read.

    Names of files stay: `str(place)` shows one, so that it can be told from every other.
    """
    made: Report = _printed(report)
    return made


def _printed(value: Any) -> Any:
    match value:
        case str():
            return printable(value)
        case tuple():
            return tuple(_printed(item) for item in value)
        case Mapping():
            return {_printed(key): _printed(item) for key, item in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            kept = {"path"} if isinstance(value, Place) else set()
            shown = {one.name: _printed(getattr(value, one.name)) for one in fields(value) if one.name not in kept}
            return replace(value, **shown)
        case _:
            return value


def dumped(document: Any) -> str:
    """JSON in ASCII, ending in a newline; it says every text exactly, and yet shows no control character.

    Half a surrogate pair, as in the name of a file that is not UTF-8, is no Unicode and many readers refuse it: it is
    shown as it is in the other formats, as an escape.
    """
    text = json.dumps(document, indent=1, default=str).replace("\x7f", "\\u007f")
    return _ESCAPES.sub(lambda found: ("\\" if found[1] else "") + found[0], text) + "\n"


def flag(repair: Repair) -> str:
    """A repair as flags of a command line: those under their right names, those to type, then those to leave out."""
    renamed = [f"{_name(change.keyword)} for {_name(change.old)}" for change in repair if change.old]
    others = [change for change in repair if not change.old]
    typed = " ".join(_flag(change.keyword, change.value) for change in others if not _dropped(change))
    left_out = ", ".join(_name(change.keyword) for change in others if _dropped(change))
    return ", ".join(filter(None, [*renamed, typed, f"without {left_out}" if left_out else ""]))


def _dropped(change: Change) -> bool:
    return change.drop or change.value is None


def _name(keyword: str) -> str:
    return f"--{keyword.replace('_', '-')}"


def _flag(keyword: str, value: Any) -> str:
    name = keyword.replace("_", "-")
    if isinstance(value, bool):
        return f"--{'' if value else 'no-'}{name}"
    return command.shown(keyword, value)


def advice(finding: Finding) -> list[str]:
    """Lines that say how to mend a finding, best first; empty where nothing was found."""
    forms = {place.form for place in finding.sites}
    lines = []
    for number, repair in enumerate(finding.repairs):
        shown = spell(repair)
        if forms & COMMANDS:
            shown += f"   ({flag(repair)})"
        lines.append(f"{'fix' if number == 0 else 'or'}: {shown}")
    return lines


def raised(finding: Finding) -> str:
    """Who says so, and where that is in the engine."""
    verbs = {"refused": "refused", "refused-otherwise": "refused"}
    verb = verbs.get(finding.kind, "")
    if not verb and not finding.origin:
        return ""
    by = f" {_BY.get(finding.phase, f'by the {finding.phase}')}" if verb and finding.phase else ""
    at = f"{', raised at' if verb else 'said at'} {finding.origin}" if finding.origin else ""
    return f"{verb}{by}{at}"


def which(place: Place) -> str:
    """`3 of 12 parameter sets, model=…: a, b, c`."""
    parts = []
    if place.params:
        tried = f" ({place.tried:,} were tried)" if place.tried and place.tried < place.total else ""
        parts.append(f"{min(place.cases, place.total):,} of {place.total:,} parameter sets{tried}")
    if place.models:
        parts.append(f"model={listed(place.models, 3)}")
    text = ", ".join(parts)
    return f"{text}: {listed(place.params, 4)}" if place.params else text


def listed(names: Iterable[str], most: int) -> str:
    """Some names, and how many more there are."""
    every = [one_line(name, 100) for name in names]
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")


def headline(finding: Finding) -> str:
    """The first line of the message, shortened."""
    return one_line(finding.message.splitlines()[0] if finding.message else "", 240)


def told(finding: Finding, place: Place | None = None) -> str:
    """A finding in one paragraph, for annotations: message, origin, repair, and the site's conditions."""
    lines = list(_told(finding, place))
    return "\n".join(printable(line) for line in lines if line)


def _told(finding: Finding, place: Place | None) -> Iterator[str]:
    yield finding.message
    yield raised(finding)
    yield from (f"because {link}" for link in finding.chain)
    yield from advice(finding)
    if place is not None:
        yield which(place)
        yield from place.why
