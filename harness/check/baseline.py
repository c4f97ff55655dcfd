"""A file of findings that are known and not yet mended. It only ever shrinks.

Entries are fingerprints, which hold no line numbers, with the number of configurations concerned: a new parameter set
with an old fault is a new finding.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from staticfire.harness.check.base import Finding, Silenced
from staticfire.harness.check.group import with_sites
from staticfire.harness.check.messages import one_line
from staticfire.harness.errors import InputError

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One known finding: how many configurations have it, and what it was, for people."""

    cases: int
    about: str


def load(path: Path) -> dict[str, Entry]:
    """Read a baseline.

    Raises:
        InputError: It cannot be read, or is none.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"--baseline {path}: {error.strerror or error}. --update-baseline writes a first one."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"--baseline {path}: no JSON: {error}.") from error
    try:
        return _entries(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"--baseline {path}: not a baseline of schema {SCHEMA}: {error!r}.") from error


def _entries(document: Any) -> dict[str, Entry]:
    if document["schema"] != SCHEMA:
        raise ValueError(f"schema {document['schema']!r}")
    entries = {}
    for name, entry in document["findings"].items():
        cases = entry["cases"]
        if not isinstance(cases, int) or isinstance(cases, bool) or cases < 1:
            raise ValueError(f"{name}: cases must be a whole number from 1 on, got {cases!r}")
        entries[str(name)] = Entry(cases, str(entry.get("about", "")))
    return entries


def count(findings: Sequence[Finding]) -> dict[str, Entry]:
    """What a baseline of these findings holds."""
    cases: Counter[str] = Counter()
    about: dict[str, str] = {}
    for finding in findings:
        for place in finding.sites:
            cases[place.fingerprint] += place.cases
            about.setdefault(place.fingerprint, f"{finding.kind}: {one_line(finding.message, 120)} ({place.path})")
    return {name: Entry(cases[name], about[name]) for name in sorted(cases)}


def shrunk(old: Mapping[str, Entry], now: Mapping[str, Entry]) -> dict[str, Entry]:
    """The old baseline without what is gone; nothing new comes in."""
    return {
        name: Entry(min(entry.cases, now[name].cases), now[name].about) for name, entry in old.items() if name in now
    }


def save(path: Path, entries: Mapping[str, Entry]) -> None:
    """Write a baseline, sorted, so that two branches merge."""
    document = {
        "schema": SCHEMA,
        "findings": {name: {"cases": entries[name].cases, "about": entries[name].about} for name in sorted(entries)},
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def apply(findings: Sequence[Finding], known: Mapping[str, Entry]) -> tuple[list[Finding], list[Silenced], int]:
    """Take away what is known.

    Returns:
        What is left, what was taken away, and how many entries are larger than what was found or match nothing.
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
    stale = sum(name not in now or now[name].cases < entry.cases for name, entry in known.items())
    return left, silenced, stale
