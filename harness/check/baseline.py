"""A file of findings that are known and not yet mended. It only ever shrinks.

Entries are fingerprints, which hold no line numbers, with the number of configurations concerned: a new parameter set
with an old fault is a new finding.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from staticfire.harness.check.base import Finding, Silenced
from staticfire.harness.check.group import with_sites
from staticfire.harness.check.messages import named, one_line
from staticfire.harness.errors import InputError, nearest

SCHEMA: Final = 1
MAX_FAULTS: Final = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """One known finding: how many configurations have it, and what it was, for people."""

    cases: int
    about: str


def load(path: Path) -> dict[str, Entry]:
    """Read a baseline.

    Raises:
        InputError: It cannot be read, or is none; every fault is listed.
    """
    try:
        document = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        hint = " --update-baseline writes a first one." if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"--baseline {path}: {error.strerror or error}.{hint}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"--baseline {path}: no JSON: {error}.") from error
    faults = list(_faults(document))
    if faults:
        shown = "".join(f"\n  {fault}" for fault in faults[:MAX_FAULTS])
        more = f"\n  and {len(faults) - MAX_FAULTS} more" if len(faults) > MAX_FAULTS else ""
        raise InputError(f"--baseline {path}: not a baseline of schema {SCHEMA}:{shown}{more}")
    return {name: Entry(entry["cases"], entry.get("about", "")) for name, entry in document["findings"].items()}


class _Twice(dict[str, Any]):
    """An object that names keys more than once, as two merged branches can; remembers which."""

    keys_twice: tuple[str, ...] = ()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(name for name, _ in pairs)
    made = _Twice(pairs)
    made.keys_twice = tuple(name for name, n in counts.items() if n > 1)
    return made


def _faults(document: Any) -> Iterator[str]:
    """What is wrong with a document, each with its key, its value, and what is allowed."""
    if not isinstance(document, _Twice):
        yield f"it must be an object with schema and findings, got {_value(document)}"
        return
    yield from _twice(document, "")
    if "schema" not in document:
        yield f"schema: missing; it must be {SCHEMA}"
    elif document["schema"] != SCHEMA or isinstance(document["schema"], bool):
        yield f"schema: must be {SCHEMA}, got {_value(document['schema'])}"
    findings = document.get("findings")
    if "findings" not in document:
        yield "findings: missing; it must be an object of fingerprints"
    elif not isinstance(findings, _Twice):
        yield f"findings: must be an object of fingerprints, got {_value(findings)}"
    else:
        yield from _twice(findings, "findings.")
        for name, entry in findings.items():
            yield from _entry(f"findings.{one_line(name, 40)}", entry)


def _twice(found: _Twice, where: str) -> Iterator[str]:
    yield from (f"{where}{one_line(name, 40)}: stands there twice; keep one" for name in found.keys_twice)


def _entry(where: str, entry: Any) -> Iterator[str]:
    if not isinstance(entry, _Twice):
        yield f"{where}: must be an object with cases and about, got {_value(entry)}"
        return
    yield from _twice(entry, f"{where}.")
    cases = entry.get("cases")
    if "cases" not in entry:
        yield f"{where}.cases: missing; it must be a whole number from 1 on"
    elif not isinstance(cases, int) or isinstance(cases, bool) or cases < 1:
        yield f"{where}.cases: must be a whole number from 1 on, got {_value(cases)}"
    if not isinstance(entry.get("about", ""), str):
        yield f"{where}.about: must be a text, got {_value(entry['about'])}"
    for name in sorted(entry.keys() - {"cases", "about"}):
        yield f"{where}.{one_line(name, 40)}: no such key.{nearest(name, ('cases', 'about'))} Keys: about, cases"


def _value(value: Any) -> str:
    return one_line(json.dumps(value), 60)


def count(findings: Sequence[Finding]) -> dict[str, Entry]:
    """What a baseline of these findings holds."""
    cases: Counter[str] = Counter()
    about: dict[str, str] = {}
    for finding in findings:
        for place in finding.sites:
            cases[place.fingerprint] += place.cases
            said = f"{finding.kind}: {one_line(finding.message, 120)} ({named(place.path)})"
            about.setdefault(place.fingerprint, said)
    return {name: Entry(cases[name], about[name]) for name in sorted(cases)}


def shrunk(old: Mapping[str, Entry], now: Mapping[str, Entry]) -> dict[str, Entry]:
    """The old baseline without what is gone; nothing new comes in."""
    return {
        name: Entry(min(entry.cases, now[name].cases), now[name].about) for name, entry in old.items() if name in now
    }


def text(entries: Mapping[str, Entry]) -> str:
    """The file of a baseline: sorted, so that two branches merge."""
    document = {
        "schema": SCHEMA,
        "findings": {name: {"cases": entries[name].cases, "about": entries[name].about} for name in sorted(entries)},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def apply(
    findings: Sequence[Finding], known: Mapping[str, Entry]
) -> tuple[list[Finding], list[Silenced], tuple[str, ...]]:
    """Take away what is known.

    Returns:
        What is left, what was taken away, and which entries match nothing or count more than was found.
    """
    now = count(findings)
    left: list[Finding] = []
    silenced: list[Silenced] = []
    for finding in findings:
        kept = []
        for place in finding.sites:
            entry = known.get(place.fingerprint)
            if entry is None or now[place.fingerprint].cases > entry.cases:
                kept.append(place)
                continue
            alone = with_sites(finding, [place])
            assert alone is not None
            silenced.append(Silenced(alone, "baseline", "known, see the baseline"))
        if rest := with_sites(finding, kept):
            left.append(rest)
    return left, silenced, tuple(_stale(known, now))


def _stale(known: Mapping[str, Entry], now: Mapping[str, Entry]) -> Iterator[str]:
    """Entries that hold more than there is, as a person knows them."""
    for name, entry in known.items():
        there = now[name].cases if name in now else 0
        if there < entry.cases:
            left = f"{there} of {entry.cases} left" if there else "gone"
            yield f"{name} {left}: {one_line(entry.about, 160)}" if entry.about else f"{name} {left}"
