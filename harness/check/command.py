"""A command line with some of its keywords changed: flags taken out and put in, every other word as it was typed."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from staticfire.harness.scan import flags


def edited(words: Sequence[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The words after keywords have been changed.

    Args:
        words: As they were typed.
        before: What they are read as.
        after: The same with keywords changed, added or left out; None leaves one out.

    Returns:
        The words without every flag of a changed keyword, and then the new flags.
    """
    changed = [name for name in {**before, **after} if not _same(before, after, name)]
    spans = flags.parse(words).spans
    gone = {index for name in changed for first, last in spans.get(name, ()) for index in range(first, last)}
    kept = [word for index, word in enumerate(words) if index not in gone]
    added = [word for name in changed for word in spelled(name, after.get(name))]
    return (*kept, *added)


def spelled(keyword: str, value: Any) -> list[str]:
    """Words that type a keyword; none for None."""
    return list(_spelled(f"--{keyword.replace('_', '-')}", value))


def _spelled(flag: str, value: Any) -> Iterator[str]:
    match value:
        case None:
            return
        case bool():
            yield flag if value else f"--no-{flag[2:]}"
        case dict():
            yield from (flag, json.dumps(value))
        case list() | tuple():
            yield flag
            yield from (item if isinstance(item, str) else json.dumps(item) for item in value)
        case _:
            yield from (flag, str(value))


def shown(keyword: str, value: Any) -> str:
    """The same for people, quoted as a shell wants it."""
    return shlex.join(spelled(keyword, value))


def _same(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    one, other = before.get(name), after.get(name)
    return (name in before or one is None) and type(one) is type(other) and bool(one == other)
