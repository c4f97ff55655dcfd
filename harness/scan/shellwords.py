"""Words of a shell: quotes removed, variables and arrays put in, nothing run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from staticfire.harness.scan.base import Location, Unknown
from staticfire.harness.scan.values import Joined, Keys, Rest, Text

ASSIGNMENT = re.compile(
    r"^(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)(\+?)=(.*)$", re.DOTALL
)
_VARIABLE = re.compile(
    r"\$(?:\{(?P<every>[!#]?)(?P<braced>[A-Za-z_]\w*)(?:\[(?P<index>[@*]|\d+|\$?[A-Za-z_]\w*)\])?"
    r"(?:(?P<operator>:?[-=+?])(?P<default>[^{}]*))?\}"
    r"|(?P<plain>[A-Za-z_]\w*)|(?P<special>[@*#?$!0-9])|(?P<substitution>\()|\{)"
)
_BRACES = re.compile(r"^([^{}$\"'`]*)\{([^{}$\"'`]*)\}([^{}$\"'`]*)$")
_RANGE = re.compile(r"^(-?\d{1,4})\.\.(-?\d{1,4})$")


class Word(str):
    """A word with its quotes kept.

    Attributes:
        start: Offset of its first character.
    """

    __slots__ = ("start",)
    start: int

    def __new__(cls, text: str, start: int) -> Self:
        """A word and where it starts."""
        made = super().__new__(cls, text)
        made.start = start
        return made

    @property
    def end(self) -> int:
        """Offset after its last character."""
        return self.start + len(self)


@dataclass(slots=True)
class Variables:
    """What a script assigns, as far as it has been read."""

    values: dict[str, Any] = field(default_factory=dict)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    exported: Keys = field(default_factory=Keys)

    def copied(self) -> "Variables":
        """As they are now."""
        exported = Keys(self.exported)
        exported.inherit(self.exported)
        return Variables(dict(self.values), {name: list(items) for name, items in self.lists.items()}, exported)

    def become(self, ways: list["Variables"]) -> None:
        """What they are after one of several ways was gone, nobody knows which."""
        self.values = {name: _either(name, [way.values.get(name) for way in ways]) for name in _names(ways, "values")}
        self.lists = {}
        for name in _names(ways, "lists"):
            first = ways[0].lists.get(name)
            same = first is not None and all(way.lists.get(name) == first for way in ways)
            self.lists[name] = list(first or ()) if same else [Rest(Unknown("condition", name))]
        exported = Keys()
        for name in dict.fromkeys(name for way in ways for name in way.exported):
            exported[name] = _either(name, [way.exported.get(name) for way in ways])
            exported.where[name] = next(way.exported.where[name] for way in ways if name in way.exported)
        self.exported = exported


def _names(ways: list[Variables], part: str) -> Iterator[str]:
    return iter(dict.fromkeys(name for way in ways for name in getattr(way, part)))


def _either(name: str, values: list[Any]) -> Any:
    first = values[0]
    if all(value == first for value in values):
        return first
    texts = tuple(dict.fromkeys(str(value) for value in values if isinstance(value, str)))
    return Unknown("condition", name, texts if all(isinstance(value, str) for value in values) else ())


def words_of(text: str) -> Iterator[Word]:
    """Words with their quotes kept; operators that end a command are words of their own."""
    word = ""
    begin = 0
    quote = ""
    depth = 0
    skip = False
    for position, char in enumerate(text):
        if not word:
            begin = position
        if skip:
            word += char
            skip = False
        elif char == "\\" and quote != "'":
            word += char
            skip = True
        elif quote:
            word += char
            quote = "" if char == quote else quote
        elif char in "\"'":
            word += char
            quote = char
        elif depth or (char in "({" and word[-1:] in {"=", "$"}):
            word += char
            depth += (char in "({") - (char in ")}")
        elif char in " \t\n;&|":
            if word:
                yield Word(word, begin)
            word = ""
            if char in ";&|\n":
                yield Word(";" if char == "\n" else char, position)
        else:
            word += char
    if word:
        yield Word(word, begin)


def assign(matched: re.Match[str], variables: Variables) -> Any:
    """Do what an assignment says, and return the value.

    Args:
        matched: What `ASSIGNMENT` matched.
        variables: What is changed.
    """
    name, appends, raw = matched[1], matched[2], matched[3]
    if raw.startswith("("):
        words = [
            item for word in words_of(raw[1:].rstrip(")")) if word != ";" for item in expand(word, variables, None)
        ]
        variables.lists[name] = [*variables.lists.get(name, []), *words] if appends else words
        return Unknown("shell", name)
    items = expand(raw, variables, None, split=False)
    value = items[0] if items else ""
    have = variables.values.get(name)
    if appends and isinstance(have, str) and isinstance(value, str):
        value = have + value
    elif appends and have is not None:
        value = Unknown("shell", name)
    variables.values[name] = value
    return value


def braces(word: str) -> list[str]:
    """`{a,b}` and `{1..4}` in a word without quotes, spelled out; any other word as it is."""
    matched = _BRACES.match(word)
    if matched is None:
        return [word]
    before, inside, after = matched.groups()
    if found := _RANGE.match(inside):
        first, last = int(found[1]), int(found[2])
        step = 1 if first <= last else -1
        return [f"{before}{number}{after}" for number in range(first, last + step, step)]
    return [f"{before}{part}{after}" for part in inside.split(",")] if "," in inside else [word]


def expand(word: str, variables: Variables, where: Location | None, *, split: bool = True) -> list[Any]:
    """One word with its quotes removed and its variables put in; several where an unquoted one holds spaces."""
    pieces: list[Any] = []
    quoted = False
    index = 0
    quote = ""
    lists: list[Any] | None = None
    while index < len(word):
        char = word[index]
        if char == "'" and quote != '"':
            end = word.find("'", index + 1)
            end = len(word) if end < 0 else end
            pieces.append(word[index + 1 : end])
            quoted = True
            index = end + 1
        elif char == '"':
            quote = "" if quote else '"'
            quoted = True
            index += 1
        elif char == "\\" and index + 1 < len(word):
            keep = quote and word[index + 1] not in '"\\$`\n'
            pieces.append(word[index : index + 2] if keep else word[index + 1])
            index += 2
        elif char == "$" and (matched := _VARIABLE.match(word, index)):
            value, index = _value(matched, word, variables)
            if isinstance(value, list):
                lists = value
            else:
                pieces.append(value if quote or not isinstance(value, str) else _Bare(value))
        elif char == "`":
            pieces.append(Unknown("shell", "command substitution"))
            end = word.find("`", index + 1)
            index = len(word) if end < 0 else end + 1
        else:
            pieces.append(char)
            index += 1
    if lists is not None and not pieces:
        return list(lists)
    return _assembled(pieces, quoted=quoted or not split, where=where)


class _Bare(str):
    """The value of a variable outside quotes: split at spaces."""

    __slots__ = ()


def _assembled(pieces: list[Any], *, quoted: bool, where: Location | None) -> list[Any]:
    if len(pieces) == 1 and isinstance(pieces[0], Unknown):
        single = quoted or _one_word(pieces[0])
        return [pieces[0] if single else Rest(pieces[0])]
    if any(isinstance(piece, _Bare) for piece in pieces) and not quoted and all(isinstance(p, str) for p in pieces):
        return [Text(part, where) if where else part for part in _unquoted("".join(pieces))]
    flat: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and flat and isinstance(flat[-1], str):
            flat[-1] += str(piece)
        else:
            flat.append(str(piece) if isinstance(piece, str) else piece)
    if not flat:
        return [""] if quoted else []
    if len(flat) == 1 and isinstance(flat[0], str):
        return [Text(flat[0], where) if where else flat[0]]
    return [Joined(tuple(flat))]


def _one_word(value: Unknown) -> bool:
    """Whether a value is one word without quotes, too, whichever it is."""
    return bool(value.candidates) and all(
        isinstance(one, str) and one and not one.startswith("-") and len(one.split()) == 1 for one in value.candidates
    )


def _unquoted(text: str) -> list[str]:
    try:
        return shlex.split(text) if "'" in text or '"' in text else text.split()
    except ValueError:
        return text.split()


def _value(matched: re.Match[str], word: str, variables: Variables) -> tuple[Any, int]:
    if matched["substitution"] is not None or matched[0] == "${":
        opening = "(" if matched["substitution"] else "{"
        closing = {"(": ")", "{": "}"}[opening]
        depth, index = 1, matched.end()
        while index < len(word) and depth:
            depth += (word[index] == opening) - (word[index] == closing)
            index += 1
        return Unknown("shell", "command substitution"), index
    if matched["special"] is not None:
        return Unknown("shell", f"${matched['special']}"), matched.end()
    name = matched["braced"] or matched["plain"]
    if matched["every"]:
        return _about(name, matched["every"], matched["index"], variables), matched.end()
    return _named(name, matched["index"], matched["operator"], matched["default"], variables), matched.end()


def _about(name: str, sign: str, index: str | None, variables: Variables) -> Any:
    """`${#array[@]}` and `${!array[@]}`."""
    items = variables.lists.get(name)
    if index not in {"@", "*"} or items is None or any(isinstance(item, Rest) for item in items):
        return Unknown("shell", f"${{{sign}{name}}}")
    return str(len(items)) if sign == "#" else [str(number) for number in range(len(items))]


def _named(name: str, index: str | None, operator: str | None, default: str | None, variables: Variables) -> Any:
    if name in variables.lists:
        return _element(name, variables.lists[name], index, variables)
    value = variables.values.get(name)
    if value is not None:
        return default if operator and operator.lstrip(":") == "+" else value
    if operator and operator.lstrip(":") in {"-", "="} and "$" not in (default or ""):
        return (default or "").strip("\"'")
    return Unknown("environment", name)


def _element(name: str, items: list[Any], index: str | None, variables: Variables) -> Any:
    if index in {"@", "*"}:
        return items
    number = variables.values.get(index.lstrip("$")) if index and not index.isdigit() else index or "0"
    if not isinstance(number, str) or not number.isdigit() or any(isinstance(item, Rest) for item in items):
        return Unknown("shell", f"{name}[{index}]")
    return items[int(number)] if int(number) < len(items) else ""


__all__ = ["ASSIGNMENT", "Variables", "Word", "assign", "braces", "expand", "words_of"]
