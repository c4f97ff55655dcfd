"""Comments that accept a finding: `# staticfire: allow SC101 -- why it is meant so`.

The comment stands on one of the lines of the call, or on a line of its own right above it. It names findings by the
code or name of their kind, by the code or name of a rule, by the slug of the message, or by fingerprint; several are
joined by commas. The reason is required.
"""

import io
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from staticfire.harness.check.base import Finding, Place, Silenced
from staticfire.harness.check.fingerprint import digest
from staticfire.harness.check.group import with_sites
from staticfire.harness.check.messages import one_line, slug

MARK: Final = re.compile(r"#\s*staticfire\s*:(?P<rest>.*)", re.IGNORECASE)
FORM: Final = re.compile(r"\s*allow\s+(?P<names>[\w.-]+(?:\s*,\s*[\w.-]+)*)\s*(?:--\s*(?P<reason>.*?)\s*)?$")
MAX_BYTES: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Comment:
    """One suppression comment.

    Attributes:
        path: File, as the scan names it.
        line: 1-based.
        column: 1-based.
        covers: Line of the code it is about: its own, or for a comment alone the next line of code.
        names: What it allows.
        reason: Why; empty where none is given.
        fault: What is wrong with it, empty where nothing is.
    """

    path: str
    line: int
    column: int
    covers: int
    names: tuple[str, ...]
    reason: str
    fault: str = ""


def read(path: Path, name: str) -> list[Comment]:
    """The suppression comments of a file; a file that cannot be read has none.

    Args:
        path: The file.
        name: As the scan names it.
    """
    try:
        raw = path.read_bytes()
    except OSError:
        return []
    if len(raw) > MAX_BYTES or b"staticfire" not in raw.lower():
        return []
    text = raw.decode("utf-8", "replace")
    lines = text.splitlines()
    places = _python(text) if path.suffix == ".py" else None
    found = []
    for line, column, comment in places if places is not None else _plain(lines):
        mark = MARK.search(comment)
        if mark:
            found.append(_comment(name, line, column + mark.start(), mark.group("rest"), lines))
    return found


def _python(text: str) -> list[tuple[int, int, str]] | None:
    """Comments of Python source by its tokens, so that a text in a string is none; None where it has no tokens."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, RecursionError, MemoryError):
        return None
    return [(one.start[0], one.start[1] + 1, one.string) for one in tokens if one.type == tokenize.COMMENT]


def _plain(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    return [(number, 1, line) for number, line in enumerate(lines, 1) if "#" in line]


def _comment(name: str, line: int, column: int, rest: str, lines: Sequence[str]) -> Comment:
    alone = not lines[line - 1][: column - 1].strip()
    covers = line
    if alone:
        covers = next((n for n in range(line, len(lines)) if _is_code(lines[n])), line - 1) + 1
    form = FORM.fullmatch(rest.rstrip())
    if form is None:
        fault = "it reads: # staticfire: allow NAME[, NAME] -- REASON"
        return Comment(name, line, column, covers, (), "", fault)
    names = tuple(part.strip() for part in form.group("names").split(","))
    reason = (form.group("reason") or "").strip()
    return Comment(name, line, column, covers, names, reason, "" if reason else "it gives no reason: add -- REASON")


def _is_code(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith("#")


def known_as(finding: Finding, place: Place) -> set[str]:
    """Every name that a comment can call a finding by, in lower case."""
    kind = finding.facts
    names = {kind.code, kind.name, slug(finding.message), place.fingerprint, *finding.rules}
    return {name.lower() for name in names if name}


def apply(
    findings: Sequence[Finding], comments: Sequence[Comment], judged: Mapping[str, Sequence[tuple[int, int, bool]]]
) -> tuple[list[Finding], list[Silenced]]:
    """Take away what comments accept, and report comments that are wrong or accept nothing.

    Args:
        findings: Of the whole run.
        comments: Of every file under the given paths.
        judged: Path -> first line, last line and whether it was judged, of every site.

    Returns:
        What is left, findings about the comments included, and what was taken away.
    """
    sound = [comment for comment in comments if not comment.fault]
    used: set[Comment] = set()
    left: list[Finding] = []
    silenced: list[Silenced] = []
    by_path: dict[str, list[Comment]] = {}
    for comment in sound:
        by_path.setdefault(comment.path, []).append(comment)
    for finding in findings:
        kept = []
        for place in finding.sites:
            allowing = _allowing(finding, place, by_path.get(place.path, ()))
            alone = with_sites(finding, [place])
            if allowing is None or alone is None:
                kept.append(place)
                continue
            used.add(allowing)
            silenced.append(Silenced(alone, "comment", allowing.reason))
        if rest := with_sites(finding, kept):
            left.append(rest)
    left += [
        _about(comment, "invalid-suppression", f"suppression comment: {comment.fault}")
        for comment in comments
        if comment.fault
    ]
    for comment in sound:
        if comment not in used and _could_be_judged(comment, judged.get(comment.path, ())):
            names = ", ".join(comment.names)
            left.append(_about(comment, "unused-suppression", f"nothing to allow here: {names} is not found"))
    return left, silenced


def _allowing(finding: Finding, place: Place, comments: Iterable[Comment]) -> Comment | None:
    names = known_as(finding, place)
    for comment in comments:
        inside = place.line <= comment.covers <= place.end_line
        if inside and names & {name.lower() for name in comment.names}:
            return comment
    return None


def _could_be_judged(comment: Comment, sites: Iterable[tuple[int, int, bool]]) -> bool:
    """Whether silence about a comment's code means something: the sites it covers were judged, or it covers none."""
    covered = [judged for first, last, judged in sites if first <= comment.covers <= last]
    return all(covered)


def _about(comment: Comment, kind: str, message: str) -> Finding:
    place = Place(
        path=comment.path,
        line=comment.line,
        column=comment.column,
        end_line=comment.line,
        end_column=0,
        function="",
        form="comment",
        certainty="certain",
        fingerprint=digest([kind, comment.path, " ".join(comment.names)]),
    )
    return Finding(kind, "certain", one_line(message), "", (place,))
