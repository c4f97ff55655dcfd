"""Words of a shell: quotes removed, variables, arrays and simple arithmetic put in, nothing run."""

import re
from typing import Any

from staticfire.harness.scan.base import Location, Unknown
from staticfire.harness.scan.budget import TooLarge
from staticfire.harness.scan.shellarithmetic import computed, indirect
from staticfire.harness.scan.shelllex import PLACEHOLDER, behind_backquote, words_of
from staticfire.harness.scan.shellnames import assigned, substituted
from staticfire.harness.scan.shellstate import LIST, SPLIT, Variables
from staticfire.harness.scan.values import Joined, Rest, Text

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=(.*)", re.DOTALL)
"""Variable, index in brackets, `+`, value."""
_VARIABLE = re.compile(
    r"\$(?:\{(?P<every>[!#]?)(?P<braced>[A-Za-z_]\w*|\d{1,4}|[@*#])(?:\[(?P<index>[@*]|\d{1,9}|\$?[A-Za-z_]\w*)\])?"
    r"(?:(?P<operator>:?[-=+?])(?P<default>[^{}]*))?\}"
    r"|(?P<plain>[A-Za-z_]\w*)|(?P<special>[@*#?$!0-9-])|(?P<arithmetic>\(\((?P<sum>[^()$`\"']*)\)\))"
    r"|(?P<substitution>\()|(?P<template>\{\{[^{}\n]{0,200}\}\})|\{)"
)
_TEMPLATE = re.compile(r"\{\{[^{}\n]{0,200}\}\}")
_PLAIN = re.compile(r"[^'\"\\$`<{]+")
_BRACES = re.compile(r"^([^{}$\"'`]*)\{([^{}$\"'`]*)\}([^{}$\"'`]*)$")
_RANGE = re.compile(r"^(-?\d{1,4})\.\.(-?\d{1,4})$")
_PIECES = 64
"""Pieces of a word that are known or not, in turn."""
_BLANK = re.compile(r"[ \t\n]")
_GLOB = re.compile(r"[*?]|\[(?!\.{2,3}\]|[A-Z_]{2,40}\])[^\]]*\]|[@+!]\(")
"""Outside quotes, a pattern of the names of files; `[...]` and `[OPTIONS]` are what documentation leaves out."""


def assign(matched: re.Match[str], variables: Variables) -> Any:
    """Do what an assignment says, and return the value.

    Args:
        matched: What `ASSIGNMENT` matched.
        variables: What is changed.
    """
    name, index, appends, raw = matched.groups()
    if index is not None:
        variables.forget(assigned(index))
        variables.forget([name])
        if variables.items(name) is not None:
            variables.put(LIST, name, [Rest(Unknown("shell", name))])
        return Unknown("shell", name)
    if raw.startswith("("):
        return _assign_list(name, raw, variables, appends=bool(appends))
    items = expand(raw, variables, None, split=False)
    value = items[0] if items else ""
    value = str(value) if isinstance(value, str) else Unknown("shell", name) if isinstance(value, Rest) else value
    have = variables.value(name)
    if appends and isinstance(have, str) and isinstance(value, str):
        variables.budget.make(len(have) + len(value))
        value = have + value
    elif appends and have is not None:
        value = Unknown("shell", name)
    elif appends:
        value = Unknown("environment", name)
    variables.set(name, value)
    return value


def _assign_list(name: str, raw: str, variables: Variables, *, appends: bool) -> Any:
    inside = raw[1:-1] if raw.endswith(")") else raw[1:]
    raws = [one for word in words_of(inside) for one in braces(word, variables)]
    words = [item for one in raws for item in expand(one, variables, None)]
    if not all(map(spelled_out, raws)):
        words = [Rest(Unknown("shell", name))]
    for one in raws:
        if one.startswith("["):
            variables.forget(assigned(one))
            variables.forget(indirect(one, variables))
    if any(one.startswith("[") for one in raws) or variables.has("odd", name):
        words = [Rest(Unknown("shell", name))]  # elements by their index
    have = variables.items(name)
    if appends and have is None:
        words = [Rest(Unknown("shell", name))] if variables.value(name) is not None else words
    before = have or [] if appends else []
    variables.budget.elements(len(before) + len(words))
    variables.put("value", name, Unknown("shell", name))
    variables.put(LIST, name, [*before, *words])
    return Unknown("shell", name)


def braces(word: str, variables: Variables) -> list[str]:
    """`{a,b}` and `{1..4}` in a word without quotes, spelled out; any other word as it is."""
    matched = _BRACES.match(word)
    if matched is None:
        return [word]
    before, inside, after = matched.groups()
    if found := _RANGE.match(inside):
        if any(len(number.lstrip("-")) > 1 and number.lstrip("-")[0] == "0" for number in found.groups()):
            return [word]
        first, last = int(found[1]), int(found[2])
        step = 1 if first <= last else -1
        variables.budget.make(abs(last - first) * (len(word) + 16))
        return [f"{before}{number}{after}" for number in range(first, last + step, step)]
    parts = inside.split(",")
    variables.budget.make(len(parts) * len(word))
    return [f"{before}{part}{after}" for part in parts] if len(parts) > 1 else [word]


def spelled_out(word: str) -> bool:
    """Whether a word has braces that are not spelled out: what it becomes is not known."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"|\\\\.|\$\{[^}]*\}|\{\{[^}]*\}\}", "", word)
    return not re.search(r"\{[^{}]*(?:,|\.\.)[^{}]*\}", bare)


def expand(  # noqa: C901, PLR0912, PLR0915 - one kind of character, one branch
    word: str, variables: Variables, where: Location | None, *, split: bool = True
) -> list[Any]:
    """One word with its quotes removed and its variables put in; several where an unquoted one holds spaces.

    What the word assigns by being expanded, as `${x:=1}` does, is not known afterwards.

    Raises:
        TooLarge: It becomes too large.
    """
    variables.budget.make(len(word))
    side = substituted(word)
    pieces: list[Any] = []
    quoted = not split
    index = 0
    quote = ""
    lists: list[Any] | None = None
    bare: list[str] = []
    if word[:1] == "~":
        pieces.append(Unknown("shell", "~"))
        quoted, index = True, 1
    while index < len(word):
        char = word[index]
        if plain := _PLAIN.match(word, index):
            pieces.append(plain[0])
            bare.append("" if quote else plain[0])
            index = plain.end()
        elif char == "'" and quote != '"':
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
            pieces.append(word[index : index + 2] if keep else word[index + 1].replace("\n", ""))
            index += 2
        elif char == "$" and word[index + 1 : index + 2] in {"'", '"'} and not quote:
            pieces.append(Unknown("shell", "quoted with $"))
            end = word.find(word[index + 1], index + 2)
            index = len(word) if end < 0 else end + 1
        elif char == "$" and (matched := _VARIABLE.match(word, index)):
            value, index = _value(matched, word, variables, within=bool(quote))
            if side.names and not isinstance(value, Unknown):
                value = Unknown("shell", matched[0][:40])
            if isinstance(value, list):
                lists = value
            else:
                pieces.append(value if quote or not isinstance(value, str) else _Bare(value))
        elif char == "`":
            pieces.append(Unknown("shell", "command substitution"))
            index = behind_backquote(word, index + 1) or len(word)
        elif char == "<" and not quote and (placeholder := PLACEHOLDER.match(word, index)):
            pieces.append(Unknown("placeholder", placeholder[0]))
            quoted, index = True, placeholder.end()
        elif char == "{" and (template := _TEMPLATE.match(word, index)):
            pieces.append(Unknown("placeholder", template[0]))
            quoted, index = True, template.end()
        else:
            pieces.append(char)
            index += 1
    variables.forget(side)
    if "((" in word or "[" in word:
        variables.forget(indirect(word, variables))
    if lists is not None:
        if not pieces:
            variables.budget.elements(len(lists))
            return list(lists)
        return [Rest(Unknown("shell", word[:40]))]  # the first and the last element take what stands beside them
    if split and (_GLOB.search("".join(bare)) or any(isinstance(one, _Bare) and _GLOB.search(one) for one in pieces)):
        return [Rest(Unknown("shell", f"names of files: {word[:40]}"))]
    return _assembled(pieces, variables, quoted=quoted, split=split, where=where)


class _Bare(str):
    """The value of a variable outside quotes: split at spaces."""

    __slots__ = ()


def _assembled(
    pieces: list[Any], variables: Variables, *, quoted: bool, split: bool, where: Location | None
) -> list[Any]:
    if len(pieces) == 1 and isinstance(pieces[0], Unknown):
        single = quoted or _one_word(pieces[0])
        return [pieces[0] if single else Rest(pieces[0])]
    if any(isinstance(piece, _Bare) for piece in pieces) and not quoted:
        if variables.has(SPLIT):
            return [Rest(Unknown("shell", "IFS"))]
        if all(isinstance(piece, str) for piece in pieces):
            variables.budget.make(sum(map(len, pieces)))
            return [Text(part, where) if where else part for part in "".join(pieces).split()]
    if split and any(isinstance(piece, _Bare) and _BLANK.search(piece) for piece in pieces):
        return [Rest(Unknown("shell", "word splitting"))]  # beside quotes, or beside what is not known
    flat = _flat(pieces, variables)
    if not flat:
        return [""] if quoted else []
    if len(flat) == 1 and isinstance(flat[0], str):
        return [Text(flat[0], where) if where else flat[0]]
    return [Joined(tuple(flat))]


def _flat(pieces: list[Any], variables: Variables) -> list[Any]:
    """Pieces with those that follow each other and are known, or are not, put together."""
    flat: list[Any] = []
    texts: list[str] = []
    variables.budget.make(sum(len(piece) for piece in pieces if isinstance(piece, str)))
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if texts:
            flat.append("".join(texts))
            texts = []
        for part in piece.pieces if isinstance(piece, Joined) else (piece,):
            if not (isinstance(part, Unknown) and flat and isinstance(flat[-1], Unknown)):
                flat.append(part)
        if len(flat) > _PIECES:
            raise TooLarge
    if texts:
        flat.append("".join(texts))
    return flat


def _one_word(value: Unknown) -> bool:
    """Whether a value is one word without quotes, too, whichever it is."""
    return value.reason == "placeholder" or (
        bool(value.candidates)
        and all(
            isinstance(one, str) and one and not one.startswith("-") and len(one.split()) == 1
            for one in value.candidates
        )
    )


def _value(matched: re.Match[str], word: str, variables: Variables, *, within: bool) -> tuple[Any, int]:
    if matched["template"] is not None:
        return Unknown("placeholder", matched[0]), matched.end()
    if matched["arithmetic"] is not None:
        return computed(matched["sum"], variables), matched.end()
    if matched["substitution"] is not None or matched[0] == "${":
        opening = "(" if matched["substitution"] else "{"
        closing = {"(": ")", "{": "}"}[opening]
        depth, index = 1, matched.end()
        while index < len(word) and depth:
            depth += (word[index] == opening) - (word[index] == closing)
            index += 1
        return Unknown("shell", "command substitution" if opening == "(" else word[matched.start() : index][:40]), index
    if matched["special"] is not None or not (matched["braced"] or "_")[0].isidentifier():
        return _positional(matched, variables), matched.end()
    name = matched["braced"] or matched["plain"]
    if matched["every"]:
        return _about(name, matched["every"], matched["index"], variables), matched.end()
    default = _default(matched["default"] or "", variables, within=within) if matched["operator"] else ""
    return _named(name, matched["index"], matched["operator"], default, variables), matched.end()


def _positional(matched: re.Match[str], variables: Variables) -> Any:
    """`$1`, `$@`, `$#`: known in a function that was called with known words, and nowhere else."""
    name = matched["special"] or matched["braced"]
    given = variables.items("@")
    if given is None or any(isinstance(item, Rest) for item in given) or matched["operator"] or matched["every"]:
        return Unknown("shell", f"${name}")
    if name in {"@", "*"}:
        return list(given) if name == "@" else Unknown("shell", "$*")
    if name == "#":
        return str(len(given))
    if name.isdigit() and 0 < int(name) <= len(given):
        return given[int(name) - 1]
    return "" if name.isdigit() and name != "0" else Unknown("shell", f"${name}")


def _about(name: str, sign: str, index: str | None, variables: Variables) -> Any:
    """`${#array[@]}` and `${!array[@]}`."""
    items = variables.items(name)
    if index not in {"@", "*"} or items is None or any(isinstance(item, Rest) for item in items):
        return Unknown("shell", f"${{{sign}{name}}}")
    variables.budget.elements(len(items))
    return str(len(items)) if sign == "#" else [str(number) for number in range(len(items))]


def _named(name: str, index: str | None, operator: str | None, default: Any, variables: Variables) -> Any:
    items = variables.items(name)
    if items is not None or index is not None:
        return Unknown("shell", name) if operator or items is None else _element(name, items, index, variables)
    value = variables.value(name)
    if operator is None:
        return Unknown("environment", name) if value is None else value
    colon, kind = operator.startswith(":"), operator.lstrip(":")
    return _chosen(name, value, default, kind, colon=colon)


def _default(default: str, variables: Variables, *, within: bool) -> Any:
    """What stands after the operator; within double quotes, single ones are characters like others."""
    if within and "'" in default:
        return Unknown("shell", default[:40]) if set('$`\\"') & set(default) else default
    found = expand(default, variables, None, split=False)
    one = found[0] if found else ""
    return Unknown(one.why.reason, one.why.detail) if isinstance(one, Rest) else one


def _chosen(name: str, value: Any, default: Any, kind: str, *, colon: bool) -> Any:
    """What `${name:-default}` and its kin are, by whether there is a value."""
    if isinstance(value, Unknown) and value.candidates:
        ways = [_chosen(name, one, default, kind, colon=colon) for one in value.candidates]
        texts = tuple(dict.fromkeys(ways)) if all(isinstance(way, str) for way in ways) else ()
        return Unknown(value.reason, value.detail, texts)
    if isinstance(value, Joined):
        value = value if any(isinstance(piece, str) and piece for piece in value.pieces) else Unknown("shell", name)
    if isinstance(value, Unknown):
        return Unknown(value.reason, value.detail)
    has = value is not None and not (colon and value == "")
    if kind == "+":
        return default if has else "" if value is not None else Unknown("environment", name)
    if has:
        return value
    return Unknown("environment", name) if kind == "?" else default


def _element(name: str, items: list[Any], index: str | None, variables: Variables) -> Any:
    if index in {"@", "*"}:
        return items if index == "@" else Unknown("shell", f"{name}[*]")
    number = variables.value(index.lstrip("$")) if index and not index.isdigit() else index or "0"
    if not isinstance(number, str) or not number.isdigit() or any(isinstance(item, Rest) for item in items):
        return Unknown("shell", f"{name}[{index}]")
    return items[int(number)] if len(number) < 10 and int(number) < len(items) else ""


__all__ = ["ASSIGNMENT", "assign", "braces", "expand", "spelled_out"]
