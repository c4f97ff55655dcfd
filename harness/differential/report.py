"""A comparison in words, and as a document for machines."""

import shlex
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final

from staticfire.harness.differential.base import Case, Disagreement
from staticfire.harness.differential.group import Group
from staticfire.harness.differential.run import Result

SCHEMA_VERSION: Final = 1
SHOWN_REASONS: Final = 8
WIDTH: Final = 110

Flags = Callable[[Mapping[str, Any]], list[str]]
"""Keywords -> words of a command line."""


def command(case: Case, result: Result, flags: Flags) -> str:
    """The command that shows our side of a case."""
    like = ["--like", result.release.name, "--device", result.device]
    return shlex.join(["staticfire", "explain", case.model, *like, *flags(case.typed)])


def text(result: Result, flags: Flags) -> str:
    """Lay out a comparison for people."""
    lines = [*_head(result), "", *_counts(result), *_unknown(result)]
    explained = [(row, count) for row, count in result.explained.counts if count]
    if explained:
        lines += ["", f"Explained ({sum(count for _, count in explained)} disagreements, {len(explained)} rows):"]
        lines += [_fold(f"{count:6}  {row.name}: {row.reason}") for row, count in explained]
    if result.stale:
        lines += ["", f"Stale rows, which explain nothing in this run ({len(result.stale)}):"]
        lines += [f"        {row.name}" for row in result.stale]
    lines += ["", *_groups(result, flags)]
    return "\n".join(lines)


def _head(result: Result) -> list[str]:
    engine, drawn = result.engine, len(result.axes.drawn)
    asked = f"{engine.name} {engine.version} ({engine.where})"
    size = f"{len(result.comparisons)} configurations of {len(result.models)} models"
    left_out = f"{len(result.axes.left_out)} more have values that no type lists"
    return [
        f"{asked} against our rules for {result.release.name}, on {result.device}",
        f"{size} over {drawn} keywords that both know (seed {result.seed}); {left_out}",
    ]


def _counts(result: Result) -> list[str]:
    first, second = result.counts("configuration"), result.counts("capacity")
    values = sum(one.values for one in result.comparisons)
    differ = sum(one.kind == "values differ" for each in result.comparisons for one in each.disagreements)
    return [
        f"configuration  {_in_words(first)}",
        f"capacity       {_in_words(second)}, not asked {second['not asked']}",
        f"values         {values} compared, {differ} differ",
    ]


def _in_words(counts: Mapping[str, int]) -> str:
    words = {"both accept": "accepted", "both refuse": "refused", "differ": "differs", "not known": "not known"}
    return ", ".join(f"{word} {counts.get(name, 0)}" for word, name in words.items())


def _unknown(result: Result) -> list[str]:
    reasons = result.unknown().most_common()
    lines = ["", "Not known, because:"] if reasons else []
    lines += [_fold(f"{count:6}  {subject}, {who}: {why}") for (subject, who, why), count in reasons[:SHOWN_REASONS]]
    rest = sum(count for _, count in reasons[SHOWN_REASONS:])
    return [*lines, f"{rest:6}  other reasons ({len(reasons) - SHOWN_REASONS})"] if rest else lines


def _groups(result: Result, flags: Flags) -> list[str]:
    if not result.groups:
        return ["Every disagreement is explained." if result.explained.counts else "No disagreement."]
    total = sum(group.members for group in result.groups)
    lines = [f"Not explained: {total} disagreements in {len(result.groups)} groups"]
    for index, group in enumerate(result.groups, 1):
        lines += ["", *_group(index, group, result, flags)]
    return lines


def _group(index: int, group: Group, result: Result, flags: Flags) -> list[str]:
    one = group.example
    what = one.subject if one.kind != "values differ" else one.because
    origin = "" if one.kind == "values differ" else f" ({one.because})"
    return [
        f"{index}. {what}: {one.kind}{origin}; {group.members} configurations, on {', '.join(group.models)}",
        f"   {command(one.case, result, flags)}",
        _fold(f"   ours:   {one.ours}", "           "),
        _fold(f"   theirs: {one.theirs}", "           "),
    ]


def _fold(line: str, indent: str = "        ") -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent=indent)


def document(result: Result, flags: Flags) -> dict[str, Any]:
    """The versioned form for machines."""
    return {
        "schema": SCHEMA_VERSION,
        "engine": {"name": result.engine.name, "version": result.engine.version},
        "release": result.release.name,
        "device": result.device,
        "seed": result.seed,
        "examples": len(result.comparisons),
        "models": list(result.models),
        "keywords": [axis.name for axis in result.axes.drawn],
        "keywords_left_out": list(result.axes.left_out),
        "configuration": dict(sorted(result.counts("configuration").items())),
        "capacity": dict(sorted(result.counts("capacity").items())),
        "values_compared": sum(one.values for one in result.comparisons),
        "not_known": [
            {"subject": subject, "who": who, "because": why, "count": count}
            for (subject, who, why), count in result.unknown().most_common()
        ],
        "explained": [
            {"row": row.name, "reason": row.reason, "count": count} for row, count in result.explained.counts if count
        ],
        "stale": [row.name for row in result.stale],
        "groups": [_group_document(group, result, flags) for group in result.groups],
    }


def _group_document(group: Group, result: Result, flags: Flags) -> dict[str, Any]:
    one: Disagreement = group.example
    return {
        "kind": one.kind,
        "subject": one.subject,
        "because": one.because,
        "members": group.members,
        "models": list(group.models),
        "model": one.case.model,
        "typed": dict(one.case.typed),
        "ours": one.ours,
        "theirs": one.theirs,
        "command": command(one.case, result, flags),
    }
