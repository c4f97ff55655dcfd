"""Command-line flags in vLLM's spelling -> keywords of the configuration, and back.

`--block-size 32`, `--block-size=32`, `--block_size 32`; `--enable-x`, `--no-enable-x` and `--disable-x` for booleans;
`32k` (thousands) and `32K` (1024s) for whole numbers, `--max-model-len auto` for -1; `-tp`, `-pp`, `-dp` and `-q`.
Options that hold a whole configuration of their own take JSON or dotted parts (`--compilation-config.mode 3`). The last
one wins.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from typing import Any, Final, Literal

from staticfire.engine.config.options import KNOWN
from staticfire.engine.config.resolution import Fix
from staticfire.engine.config.typed import Typed

Kind = Literal["flag", "int", "float", "text", "list"]
SHORT: Final = {
    "-tp": "tensor_parallel_size",
    "-pp": "pipeline_parallel_size",
    "-dp": "data_parallel_size",
    "-q": "quantization",
}
SCALES: Final = {
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
    "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
}  # fmt: skip
OURS: Final = ("--json", "--like", "--device")
"""Options of `explain` itself, for the nearest name."""
KIND_OF: Final[tuple[tuple[str, Kind], ...]] = (
    ("bool", "flag"),
    ("Literal", "text"),
    ("Annotated[str", "text"),
    ("float", "float"),
)
"""Part of an annotation -> how such a keyword stands on a command line."""
WORDS: Final = {("max_model_len", "auto"): -1}
"""(keyword, word) that stands for a number."""
NUMBER: Final = re.compile(r"(-?\d+(?:\.\d+)?)([kmgtKMGT]?)")


@dataclass(slots=True)
class Parsed:
    """What a command line says.

    Attributes:
        positional: Arguments that belong to no flag.
        typed: Keyword -> value.
        faults: Unknown flags, missing or malformed values.
    """

    positional: list[str] = field(default_factory=list)
    typed: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


@cache
def kinds() -> dict[str, Kind]:
    """Keyword -> how it stands on a command line."""
    table: dict[str, Kind] = {}
    for name, info in Typed.model_fields.items():
        text = str(info.annotation)
        table[name] = next((kind for word, kind in KIND_OF if word in text), "int")
    for name, option in KNOWN.items():
        table[name] = "text" if option.kind == "value" else option.kind
    return table


def parse(args: Iterable[str], ours: tuple[str, ...] = OURS) -> Parsed:
    """Read flags.

    Args:
        args: Arguments of the command line.
        ours: Options of the verb itself, for the nearest name.

    Returns:
        Positional arguments, keywords, and what is wrong with the others.
    """
    parsed, rest = Parsed(), list(args)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            parsed.positional += rest
            break
        if not argument.startswith("-") or argument == "-":
            parsed.positional.append(argument)
            continue
        fault = _read_flag(argument, rest, parsed.typed, ours)
        if fault:
            parsed.faults.append(fault)
    return parsed


def _read_flag(argument: str, rest: list[str], typed: dict[str, Any], ours: tuple[str, ...]) -> str | None:
    """Read one flag, taking its values off `rest`; the fault, or None."""
    spelled, equals, value = argument.partition("=")
    whole, _, part = spelled.partition(".")
    name, negated = _keyword(whole)
    if name is None:
        near = get_close_matches(spelled, [*ours, *_spellings()], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{spelled}: no such option of the engine{hint}"
    kind = kinds()[name]
    if part and (kind != "text" or name in Typed.model_fields):
        return f"{spelled}: {flag(name)} has no parts"
    if kind == "flag":
        if equals:
            return f"{argument}: takes no value; write {flag(name, True)} or {flag(name, False)}"
        typed[name] = not negated
        return None
    values = [value] if equals else _take(rest, several=kind == "list")
    if not values:
        return f"{spelled}: needs a value"
    if part:
        earlier = typed.get(name)
        typed[name] = {**(earlier if isinstance(earlier, dict) else {}), part: values[0]}
        return None
    try:
        typed[name] = values if kind == "list" else WORDS.get((name, values[0])) or _convert(values[0], kind)
    except ValueError:
        expected = "a whole number such as 4096, 4k or 4K" if kind == "int" else "a number"
        return f"{spelled} {shlex.quote(values[0])}: should be {expected}"
    return None


def _keyword(spelled: str) -> tuple[str | None, bool]:
    """The keyword of a flag, and whether the flag turns it off."""
    if spelled in SHORT:
        return SHORT[spelled], False
    if not spelled.startswith("--"):
        return None, False
    name = spelled[2:].replace("-", "_")
    table = kinds()
    if name in table:
        return name, False
    for off, on in (("no_", ""), ("disable_", "enable_")):
        target = on + name.removeprefix(off)
        if name.startswith(off) and table.get(target) == "flag":
            return target, True
    return None, False


def _take(rest: list[str], *, several: bool) -> list[str]:
    taken: list[str] = []
    while rest and not _looks_like_flag(rest[0]) and (several or not taken):
        taken.append(rest.pop(0))
    return taken


def _looks_like_flag(argument: str) -> bool:
    return argument.startswith("-") and not NUMBER.fullmatch(argument)


def _convert(text: str, kind: Kind) -> Any:
    if kind == "text":
        return text
    if kind == "float":
        return float(text)
    match = NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(text)
    if not match[2]:
        return int(text)
    scaled = Fraction(match[1]) * SCALES[match[2]]
    if scaled.denominator != 1:
        raise ValueError(text)
    return scaled.numerator


def _spellings() -> list[str]:
    return [flag(name, on) for name, kind in kinds().items() for on in ((True, False) if kind == "flag" else (True,))]


def flag(name: str, on: bool = True) -> str:
    """The flag of a keyword; of a boolean, the one that turns it on or off."""
    return f"--{'' if on else 'no-'}{name.replace('_', '-')}"


def flags(typed: Mapping[str, Any]) -> list[str]:
    """Arguments that type these keywords, ready for a shell.

    Args:
        typed: Keyword -> value; None is left out.

    Returns:
        The words, unquoted.
    """
    words: list[str] = []
    for name, value in typed.items():
        if value is None:
            continue
        if isinstance(value, bool):
            words.append(flag(name, value))
        elif isinstance(value, Mapping):
            words += [flag(name), json.dumps(value)]
        elif isinstance(value, list | tuple):
            words += [flag(name), *map(str, value)]
        else:
            text = str(value)
            words += [f"{flag(name)}={text}"] if _looks_like_flag(text) else [flag(name), text]
    return words


def fix_words(fix: Fix, typed: Mapping[str, Any]) -> str:
    """A repair in words: `add --no-enable-prefix-caching; drop --quantization fp8`."""
    parts = []
    for name, value in fix.set.items():
        verb = "change" if name in typed else "add"
        was = f"{shlex.join(flags({name: typed[name]}))} to " if name in typed else ""
        parts.append(f"{verb} {was}{shlex.join(flags({name: value}))}")
    parts += [f"drop {shlex.join(flags({name: typed[name]}))}" for name in fix.drop]
    return "; ".join(parts)
