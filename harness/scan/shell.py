"""Engine commands in shell scripts: loops followed, branches joined, nothing run."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from staticfire.harness.scan import forms
from staticfire.harness.scan.base import Form, Location, Unknown, Unread
from staticfire.harness.scan.results import Contribution, configurations
from staticfire.harness.scan.shellwords import ASSIGNMENT, Variables, Word, assign, braces, expand, words_of
from staticfire.harness.scan.state import Construct, Record
from staticfire.harness.scan.values import Items, Joined, Keys, Rest

MENTION = re.compile(r"\bvllm\s+(?:serve|bench|launch)\b|\bapi_server\b")
_END = frozenset({"&", "&&", "||", "|", ";", ";;", ">", ">>", "2>", "2>&1", "&>", "<", "|&", ")"})
_BLOCKS = frozenset({"do", "done", "if", "elif", "else", "fi", "while", "until", "case", "esac"})
_DROPPED = frozenset({"then", "{", "}", "!", "("})
_PREFIXES = frozenset({"export", "local", "readonly", "env", "nohup", "exec", "time", "eval"})
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
_GLOB = re.compile(r"[*?\[]")
_BRACED = re.compile(r"\$\{[^}]*\}")
_PATTERN = re.compile(r"[^()]+\)")
"""Before a branch of `case`."""
_MAX_LINE = 40_000
_TURNS = 256
"""Values of one loop that are each followed."""
_PARTS = 4_000
"""Commands followed in one script, those of loops each time."""

Place = Callable[[int, int], Location]
"""Offsets of the first character and after the last one -> location."""


@dataclass(slots=True)
class _Part:
    """One simple command, or a word that opens, divides or closes a block.

    Attributes:
        before: The operator before it, empty after the end of a command.
    """

    words: list[Word]
    before: str

    @property
    def head(self) -> str:
        """Its first word."""
        return str(self.words[0])


def read_shell(
    text: str, path: str, *, form: Form = "shell", place: Place | None = None
) -> tuple[list[Contribution], list[Unread]]:
    """Sites of a shell text, and what of it was not followed.

    Args:
        text: The script.
        path: Its file, as locations name it.
        form: Of its sites.
        place: Where parts of the text stand in the file, if it is not the whole of it.
    """
    if not MENTION.search(text):
        return [], []
    place = place or in_file(text, path)
    script = _Script(place, form, Variables())
    parts = list(_parts(_commands(text)))
    script.run(parts)
    notes = []
    if script.left <= 0:
        notes.append(Unread(path, place(parts[0].words[0].start, parts[0].words[0].end).line, "loops were cut off"))
    return _settled(script.found), notes


def in_file(text: str, path: str) -> Place:
    """Places in a file's own text."""

    def place(first: int, after: int) -> Location:
        line, begin = text.count("\n", 0, first) + 1, text.rfind("\n", 0, first) + 1
        end, last = text.count("\n", 0, after) + 1, text.rfind("\n", 0, after) + 1
        return Location(path, line, first - begin + 1, end, after - last + 1)

    return place


@dataclass(slots=True)
class _Script:
    """Runs through a script's commands, as far as variables and blocks go."""

    place: Place
    form: Form
    variables: Variables
    found: list[Contribution] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)
    left: int = _PARTS

    def run(self, parts: list[_Part]) -> None:
        """Follow some commands in order, loops once for each value."""
        index = 0
        while index < len(parts) and self.left > 0:
            self.left -= 1
            part = parts[index]
            index += 1
            if part.head == "for" and len(part.words) > 1:
                index = self._loop(part, parts, index)
            elif part.head in {"if", "case"}:
                end = _closing(parts, index, {"if": "fi", "case": "esac"}[part.head])
                self._branches(parts[index:end])
                index = end + 1
            elif part.head in {"while", "until"}:
                end = _closing(parts, index, "done")
                self._branches(parts[index:end])
                index = end + 1
            elif part.head not in _BLOCKS:
                self._command(part, parts[index - 2] if index > 1 else None)

    def _loop(self, part: _Part, parts: list[_Part], index: int) -> int:
        end = _closing(parts, index, "done")
        body = parts[index:end]
        name = str(part.words[1])
        values, beyond = self._values(part)
        before = self.variables.copied()
        ways = [before] if not values else []
        for value in values:
            self.variables.values[name] = value
            self.turns.append((name, value))
            self.run(body)
            self.turns.pop()
        ways.append(self.variables)
        if beyond is not None:
            self.variables = self.variables.copied()
            self.variables.values[name] = beyond
            self.run(body)
            ways.append(self.variables)
        self.variables = self.variables.copied()
        self.variables.become(ways)
        return end + 1

    def _values(self, part: _Part) -> tuple[list[str], Unknown | None]:
        """What a loop's variable becomes in turn, and why there may be more."""
        name = str(part.words[1])
        if len(part.words) < 3 or part.words[2] != "in":
            return [], Unknown("loop", name)
        values: list[str] = []
        beyond: Unknown | None = None
        for word in part.words[3:]:
            for one in braces(word):
                globs = _GLOB.search(_BRACED.sub("", one)) is not None and not {"'", '"'} & set(one)
                for item in expand(one, self.variables, None):
                    if isinstance(item, str) and not globs and len(values) < _TURNS:
                        values.append(str(item))
                    else:
                        why = _why(item)
                        beyond = beyond or Unknown("loop", f"{name}: {why}" if why else name)
        return list(dict.fromkeys(values)), beyond

    def _branches(self, parts: list[_Part]) -> None:
        """Follow each branch from the same start; afterwards any of them may have been gone."""
        before = self.variables
        ways: list[Variables] = []
        branches = list(_divided(parts))
        for body, _ in branches:
            self.variables = before.copied()
            self.run(body)
            ways.append(self.variables)
        if not any(otherwise for _, otherwise in branches):
            ways.append(before)
        self.variables = before.copied()
        self.variables.become(ways)

    def _command(self, part: _Part, former: _Part | None) -> None:
        words = part.words
        where = self.place(words[0].start, words[-1].end)
        environment = Keys(self.variables.exported)
        before = self.variables.copied()
        index = 0
        while index < len(words) and (words[index] in _PREFIXES or ASSIGNMENT.match(words[index])):
            if matched := ASSIGNMENT.match(words[index]):
                environment[matched[1]] = assign(matched, self.variables)
                environment.where[matched[1]] = where
            index += 1
        if index < len(words):
            self.variables = before  # what stands before a command holds for that command alone
            self._forget(words[index:])
            self._engine(words[index:], where, environment)
            return
        if words[0] == "export":
            self.variables.exported.update(environment)
            self.variables.exported.inherit(environment)
        if _conditional(part, former):
            self.variables.become([before, self.variables.copied()])

    def _forget(self, words: list[Word]) -> None:
        """`read` and `unset` leave variables that nobody knows."""
        for name in words[1:] if words[0] in {"read", "unset"} else ():
            self.variables.values.pop(str(name), None)
            self.variables.lists.pop(str(name), None)

    def _engine(self, words: list[Word], where: Location, environment: Keys) -> None:
        expanded = [item for word in words for item in expand(word, self.variables, where)]
        start = _start([item if isinstance(item, str) else "" for item in expanded[:40]])
        if start is None:
            return
        construct = Construct(Keys(), Items(expanded), start, where)
        record = Record(where, self.form, "", "", [construct], environment=environment)
        params = ",".join(f"{name}={value}" for name, value in self.turns)
        self.found.extend(Contribution(where, self.form, "", item) for item in configurations(record, params, ()))


def _why(item: Any) -> str:
    if isinstance(item, Rest):
        return item.why.detail
    if isinstance(item, Joined):
        return next((piece.detail for piece in item.pieces if isinstance(piece, Unknown)), "")
    return item.detail if isinstance(item, Unknown) else str(item)


def _conditional(part: _Part, former: _Part | None) -> bool:
    """Whether a command runs only if another one went in a certain way that nobody can tell."""
    if part.before == "||":
        return True
    return part.before == "&&" and former is not None and former.head in {"[", "[[", "test"}


def _closing(parts: list[_Part], index: int, word: str) -> int:
    """Index of the word that closes a block, of the end where none does."""
    opening = {"done": {"for", "while", "until"}, "fi": {"if"}, "esac": {"case"}}[word]
    depth = 1
    for position in range(index, len(parts)):
        head = parts[position].head
        depth += (head in opening) - (head == word)
        if not depth:
            return position
    return len(parts)


def _divided(parts: list[_Part]) -> Iterator[tuple[list[_Part], bool]]:
    """Branches of a block, and whether each is the one for all other cases."""
    body: list[_Part] = []
    depth = 0
    otherwise = False
    for part in parts:
        depth += (part.head in {"if", "case"}) - (part.head in {"fi", "esac"})
        pattern = not depth and part.before == ";;"
        if not depth and (part.head in {"elif", "else"} or pattern):
            yield body, otherwise
            body, otherwise = [], part.head in {"else", "*)"}
            if pattern:
                body.append(part)
        else:
            body.append(part)
    yield body, otherwise


def _settled(found: list[Contribution]) -> list[Contribution]:
    """Turns of a loop that make no difference to a command are one."""
    by_place: dict[Location, dict[str, Contribution]] = {}
    for item in found:
        plain = replace(item.configuration, params="")
        by_place.setdefault(item.where, {}).setdefault(repr(plain), item)
    kept: list[Contribution] = []
    for items in by_place.values():
        kept.extend(items.values())
        if len(items) == 1:
            kept[-1] = replace(kept[-1], configuration=replace(kept[-1].configuration, params=""))
    return kept


def _start(words: list[str]) -> int | None:
    for index in range(len(words)):
        if words[index].rpartition("/")[2] == "vllm" or words[index] == "-m":
            start = forms.engine_command(words[index : index + 4])
            if start is not None:
                return index + start
    return None


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with their offsets: comments and here-documents left out, open quotes and arrays closed.

    A continuation is joined so that every character stays at its offset.
    """
    lines = text.split("\n")
    index = offset = 0
    while index < len(lines):
        start, current = offset, lines[index]
        offset += len(current) + 1
        index += 1
        stripped = current.strip()
        if not stripped or stripped.startswith("#"):
            continue
        while index < len(lines) and len(current) < _MAX_LINE and (current.rstrip().endswith("\\") or _open(current)):
            following = lines[index]
            offset += len(following) + 1
            index += 1
            if following.strip().startswith("#"):
                following = " " * len(following)
                if current.rstrip().endswith("\\"):
                    following = following[1:] + "\\"  # the continuation goes on behind the comment
            joint = len(current.rstrip()) - 1
            if current.rstrip().endswith("\\"):
                current = f"{current[:joint]} {current[joint + 1 :]} {following}"
            else:
                current = f"{current}\n{following}"
        document = _HEREDOC.search(current)
        if document and "<<<" not in current:
            end = index
            while end < len(lines) and lines[end].strip() != document[1]:
                end += 1
            if end < len(lines):
                offset += sum(len(line) + 1 for line in lines[index : end + 1])
                index = end + 1
        yield start, current


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


def _parts(lines: Iterable[tuple[int, str]]) -> Iterator[_Part]:
    """Simple commands of logical lines, and the words of blocks between them."""
    before = ""
    cased = False
    for offset, text in lines:
        part: list[Word] = []
        for word in words_of(text):
            if word.startswith("#"):
                break
            placed = Word(word, offset + word.start)
            if word in _END or word.startswith((">", "2>", "&>", "<")):
                if part:
                    yield _Part(part, before)
                    part, before = [], ""
                before += word if word in {"&", "|", ";"} else ""
            elif not part and (word in _BLOCKS or _PATTERN.fullmatch(word)):
                yield _Part([placed], before)
                before, cased = "", word == "case"
            elif cased and word == "in":
                yield _Part([*part, placed], before)
                part, before, cased = [], "", False
            elif part or word not in _DROPPED:
                part.append(placed)
        if part:
            yield _Part(part, before)
            before = ""
