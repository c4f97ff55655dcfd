"""Engine commands in shell scripts: words with quotes, continuations and variables resolved, nothing run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from staticfire.harness.scan import forms
from staticfire.harness.scan.base import Form, Location, Unknown
from staticfire.harness.scan.results import Contribution, configurations
from staticfire.harness.scan.state import Construct, Record
from staticfire.harness.scan.values import Items, Joined, Keys, Rest, Text

MENTION = re.compile(r"\bvllm\s+(?:serve|bench|launch)\b|\bapi_server\b")
_ASSIGNMENT = re.compile(
    r"^(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)(\+?)=(.*)$", re.DOTALL
)
_VARIABLE = re.compile(
    r"\$(?:\{([A-Za-z_]\w*)(\[[@*]\])?(?:(:?[-=+?])([^{}]*))?\}|([A-Za-z_]\w*)|([@*#?$!0-9])|(\()|\{)"
)
_END = frozenset(
    {"&", "&&", "||", "|", ";", ";;", ">", ">>", "2>", "2>&1", "&>", "<", "|&", ")", "done", "fi", "then", "do"}
)
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
_MAX_LINE = 40_000


@dataclass(slots=True)
class _Command:
    line: int
    text: str


@dataclass(slots=True)
class Variables:
    """What a script assigns, as far as it has been read."""

    values: dict[str, Any] = field(default_factory=dict)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    exported: Keys = field(default_factory=Keys)


def read_shell(
    text: str, path: str, *, form: Form = "shell", first: int = 1, column: int = 1, start: Variables | None = None
) -> list[Contribution]:
    """Sites of a shell text.

    Args:
        text: The script.
        path: Its file, as locations name it.
        form: Of its sites.
        first: Line of its first line.
        column: Column of its first character.
        start: Variables that are set before it.
    """
    if not MENTION.search(text):
        return []
    variables = start or Variables()
    found: list[Contribution] = []
    for command in _commands(text):
        words = _split(command.text)
        if words is None:
            continue
        for part in _pipeline(words):
            found.extend(_part(part, command, variables, path, form, first, column))
    return found


def _part(
    words: list[str], command: _Command, variables: Variables, path: str, form: Form, first: int, column: int
) -> list[Contribution]:
    environment = Keys(variables.exported)
    index = 0
    line = first + command.line - 1
    where = Location(path, line, column, line, column)
    if words[0] == "for" and len(words) > 1:
        variables.values[words[1]] = Unknown("loop", words[1])
        return []
    while index < len(words) and (
        words[index] in {"export", "local", "env", "then", "do", "{", "(", "nohup", "exec", "time", "eval"}
        or _ASSIGNMENT.match(words[index])
    ):
        matched = _ASSIGNMENT.match(words[index])
        if matched:
            environment[matched[1]] = _assign(matched, variables)
            environment.where[matched[1]] = where
        index += 1
    if index >= len(words):
        if words[0] == "export":
            variables.exported.update(environment)
            variables.exported.inherit(environment)
        return []
    expanded = [item for word in words[index:] for item in expand(word, variables, where)]
    plain_words = [item if isinstance(item, str) else "" for item in expanded[:40]]
    start = _start(plain_words)
    if start is None:
        return []
    items = Items(expanded)
    construct = Construct(Keys(), items, start, where)
    record = Record(where, form, "", "", [construct], environment=environment)
    return [Contribution(where, form, "", item) for item in configurations(record, "", ())]


def _start(words: list[str]) -> int | None:
    for index in range(len(words)):
        if words[index].rpartition("/")[2] == "vllm" or words[index] == "-m":
            start = forms.engine_command(words[index : index + 4])
            if start is not None:
                return index + start
    return None


def _commands(text: str) -> Iterator[_Command]:
    """Logical lines: continuations joined, comments and here-documents left out, open quotes and arrays closed."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        start = index
        current = lines[index]
        index += 1
        stripped = current.strip()
        if not stripped or stripped.startswith("#"):
            continue
        while index < len(lines) and len(current) < _MAX_LINE and (current.rstrip().endswith("\\") or _open(current)):
            following = lines[index]
            index += 1
            if following.strip().startswith("#"):
                continue
            joint = current.rstrip()
            current = joint[:-1] + " " + following if joint.endswith("\\") else current + "\n" + following
        document = _HEREDOC.search(current)
        if document and "<<<" not in current:
            end = index
            while end < len(lines) and lines[end].strip() != document[1]:
                end += 1
            index = min(end + 1, len(lines)) if end < len(lines) else index
        yield _Command(start + 1, current)


def _open(text: str) -> bool:
    """Whether a quote or an array is still open."""
    quote = ""
    depth = 0
    skip = False
    for position, char in enumerate(text):
        if skip:
            skip = False
        elif char == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and (position == 0 or text[position - 1].isspace()):
            break
        elif char == "(" and position and text[position - 1] == "=":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
    return bool(quote) or depth > 0


def _split(text: str) -> list[str] | None:
    """Words with their quotes kept, operators apart."""
    words: list[str] = []
    for word in words_of(text):
        if word.startswith("#"):
            break
        words.append(word)
    return words


def words_of(text: str) -> Iterator[str]:
    """Words with their quotes kept; operators that end a command are words of their own."""
    word = ""
    quote = ""
    depth = 0
    skip = False
    for char in text:
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
        elif depth:
            word += char
            depth += (char in "({") - (char in ")}")
        elif char in "({" and word and word[-1] in "=$":
            word += char
            depth = 1
        elif char in " \t\n;&|":
            if word:
                yield word
            word = ""
            if char in ";&|\n":
                yield ";" if char == "\n" else char
        else:
            word += char
    if word:
        yield word


def _pipeline(words: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word in _END or word.startswith((">", "2>", "&>", "<")):
            if part:
                yield part
            part = []
        else:
            part.append(word)
    if part:
        yield part


def _assign(matched: re.Match[str], variables: Variables) -> Any:
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
    variables.values[name] = value
    return value


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
        return [pieces[0] if quoted else Rest(pieces[0])]
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


def _unquoted(text: str) -> list[str]:
    try:
        return shlex.split(text) if "'" in text or '"' in text else text.split()
    except ValueError:
        return text.split()


def _value(matched: re.Match[str], word: str, variables: Variables) -> tuple[Any, int]:
    braced, array, operator, default, plain, special, substitution = matched.groups()
    if substitution is not None or matched[0] == "${":
        opening = "(" if substitution else "{"
        closing = {"(": ")", "{": "}"}[opening]
        depth, index = 1, matched.end()
        while index < len(word) and depth:
            depth += (word[index] == opening) - (word[index] == closing)
            index += 1
        return Unknown("shell", "command substitution"), index
    if special is not None:
        return Unknown("shell", f"${special}"), matched.end()
    name = braced or plain
    if name in variables.lists:
        return variables.lists[name] if array else (variables.lists[name] or [""])[0], matched.end()
    if name in variables.values:
        value = variables.values[name]
        if operator and operator.lstrip(":") == "+":
            return default, matched.end()
        return value, matched.end()
    if operator and operator.lstrip(":") in {"-", "="} and "$" not in (default or ""):
        return default.strip("\"'"), matched.end()
    return Unknown("environment", name), matched.end()
