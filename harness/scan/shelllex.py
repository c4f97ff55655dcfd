"""Tokens of a shell's text: words with their quotes kept, operators, comments and here-documents left out.

One pass from left to right: the time is that of the text's length, whatever stands in it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Self

_PLAIN = re.compile(r"[^\s;&|()<>\"'\\$`{#]+")
_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_REDIRECTION = re.compile(r"(?:\d{1,4}|\{[A-Za-z_]\w{0,40}\})?(?:<<<|<<-?|<>|<&|>&|>>|>\||&>>|&>|<|>)")
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|[;&|()\n]")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=$")
_TEMPLATE = re.compile(r"\$?\{\{[^{}\n]{0,200}\}\}")
PLACEHOLDER = re.compile(r"<[A-Za-z_][\w .:/-]{0,60}>(?![\w$\"'])")
"""What documentation puts where a reader is to put something: `<N>`. In a script it would be two redirections."""
_INSIDE = re.compile(r"[^\\\"'`$(){}#]+")
_BACKQUOTED = re.compile(r"(?:[^`\\]|\\.)*+`", re.DOTALL)
_NEXT_LINE = re.compile(r"\n[ \t\r]*")
_CLOSING = {"(": ")", "{": "}"}
_NAME = 200
"""Length of a line that can end a here-document."""
_LINES = 64
"""Lines that hold the name beside spaces that are looked at for one that is the name alone."""
_OPENS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "coproc"})
"""Reserved words after which a command starts."""


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


@dataclass(frozen=True, slots=True)
class Token:
    """A part of the text.

    Attributes:
        kind: A word, an operator, the inside of `((...))`, the target of a redirection, or the variable that a
            redirection such as `{name}>file` assigns.
        text: As it stands there.
    """

    kind: Literal["word", "operator", "arithmetic", "target", "descriptor"]
    text: Word


@dataclass(slots=True)
class Lexer:
    """Reads tokens.

    Args:
        text: The script.
    """

    text: str
    _documents: list[tuple[str, str]] = field(default_factory=list)
    _single: dict[str, list[int]] | None = None
    _broken: bool = False

    def tokens(self) -> Iterator[Token]:
        """All tokens, in order; a line's end is the operator of that name."""
        text, index, starts = self.text, 0, True
        while index < len(text):
            if blank := _BLANK.match(text, index):
                index = self._behind_comments(blank.end(), continued="\\" in blank[0])
            elif text[index] == "#":
                index = self._line_end(index)
            elif starts and text.startswith("((", index) and (end := self._arithmetic(index)):
                yield Token("arithmetic", Word(text[index + 2 : end - 2], index + 2))
                index, starts = end, False
            elif (found := _OPERATOR.match(text, index)) and not text.startswith("&>", index):
                yield Token("operator", Word(found[0], index))
                index, starts = found.end(), found[0] != ")"
                if found[0] == "\n":
                    index = self._skip_documents(index)
            elif (found := _REDIRECTION.match(text, index)) and not self._no_redirection(found):
                if found[0].startswith("{"):
                    yield Token("descriptor", Word(found[0][1 : found[0].index("}")], index + 1))
                target, index = self._redirected(found)
                if target:
                    yield Token("target", target)
            elif (end := self._word(index)) > index:
                word = Word(text[index:end], index)
                starts = word in _OPENS or (word == "for" and starts)
                index = end
                yield Token("word", word)
            else:
                index += 1

    def _no_redirection(self, found: re.Match[str]) -> bool:
        after = self.text[found.end() : found.end() + 1]
        return (found[0] in {"<", ">"} and after == "(") or PLACEHOLDER.match(self.text, found.start()) is not None

    def _redirected(self, found: re.Match[str]) -> tuple[Word, int]:
        """The target of a redirection, and where the text goes on."""
        blank = _BLANK.match(self.text, found.end())
        start = blank.end() if blank else found.end()
        end = self._word(start)
        target = Word(self.text[start:end], start)
        if found[0].endswith(("<<", "<<-")) and target:
            self._documents.append((re.sub(r"[\"'\\]", "", target), "\t" if found[0].endswith("-") else ""))
        return target, max(end, found.end())

    def _behind_comments(self, index: int, *, continued: bool) -> int:
        """A command that is continued goes on behind lines of comment, as people write it."""
        while continued and self.text.startswith("#", index):
            index = self._line_end(index)
            blank = _NEXT_LINE.match(self.text, index)
            index = blank.end() if blank else index
        return index

    def _line(self, start: int) -> str:
        return self.text[start : self._line_end(start)].removesuffix("\r")

    def _line_end(self, index: int) -> int:
        end = self.text.find("\n", index)
        return len(self.text) if end < 0 else end

    def _skip_documents(self, index: int) -> int:
        """Behind the here-documents that the line before called for; one without an end is taken for none.

        The end is a line of the name alone. Where there is none, as where a whole script is indented, spaces around it
        do no harm.
        """
        if not self._documents:
            return index
        if self._single is None:
            self._single, position = {}, 0
            for line in self.text.split("\n"):
                if line and len(line) < _NAME and len(words := line.split()) == 1:
                    self._single.setdefault(words[0], []).append(position)
                position += len(line) + 1
        for name, indent in self._documents:
            places = self._single.get(name, [])
            found = bisect_left(places, index)
            if found == len(places):
                break
            last = min(found + _LINES, len(places))
            whole = (one for one in places[found:last] if self._line(one).lstrip(indent or "\0") == name)
            index = min(self._line_end(next(whole, places[found])) + 1, len(self.text))
        self._documents.clear()
        return index

    def _arithmetic(self, index: int) -> int:
        """Offset behind `((...))`; 0 where it is not closed as such."""
        end = self._closed(index + 1, "(")
        return end + 1 if end and self.text.startswith(")", end) else 0

    def _word(self, start: int) -> int:
        """Offset behind the word that starts at an offset."""
        text, index = self.text, start
        while index < len(text):
            if found := _PLAIN.match(text, index):
                index = found.end()
                continue
            char = text[index]
            if char.isspace() or char in ";&|)":
                break
            if char == "#" and index > start:
                index += 1
            elif char in "<>":
                if placeholder := PLACEHOLDER.match(text, index):
                    index = placeholder.end()
                elif text.startswith("(", index + 1):
                    index = self._quoted(index + 1, "(")
                else:
                    break
            elif char == "(":
                if not _ARRAY.match(text[max(start, index - 200) : index]):
                    break
                index = self._quoted(index, "(")
            else:
                index = self._special(index)
        return index

    def _special(self, index: int) -> int:
        text, char = self.text, self.text[index]
        if found := _TEMPLATE.match(text, index):
            return found.end()
        if char == "\\":
            return min(index + 2, len(text))
        if char in "\"'`":
            return self._quoted(index, char)
        if char == "$" and text[index + 1 : index + 2] in {"(", "{"}:
            return self._quoted(index + 1, text[index + 1])
        if char == "$" and text[index + 1 : index + 2] == "'":
            return self._quoted(index + 1, "$'")
        return index + 1

    def _quoted(self, index: int, opening: str) -> int:
        """Behind what is opened at an offset; where nothing closes it, at the end of the line, and so from then on."""
        if not self._broken:
            end = self._closed(index, opening)
            if end:
                return end
            self._broken = True
        end = self._closed(index, opening, self._line_end(index))
        return end or self._line_end(index)

    def _closed(self, index: int, opening: str, limit: int | None = None) -> int:  # noqa: C901 - one character, one branch
        """Offset behind the character that closes what is opened at an offset; 0 where there is none."""
        text = self.text
        limit = len(text) if limit is None else limit
        open_ = [_CLOSING.get(opening, opening)]
        index += 1
        while index < limit:
            if found := _INSIDE.match(text, index, limit):
                index = found.end()
                continue
            char, within = text[index], open_[-1]
            if within in {"'", "`"}:
                end = text.find(within, index, limit) if within == "'" else behind_backquote(text, index, limit) - 1
                if end < 0:
                    return 0
                index = end
                char = within
            if char == within or (within == "$'" and char == "'"):
                open_.pop()
                if not open_:
                    return index + 1
            elif char == "\\":
                index += 1
            elif within == "$'":
                pass
            elif char == "$" and text[index + 1 : index + 2] in {"(", "{"}:
                index += 1
                open_.append(_CLOSING[text[index]])
            elif char in '"`' or (char == "'" and within != '"'):
                open_.append(char)
            elif within == ")" and char == "(":
                open_.append(")")
            elif within == ")" and char == "#" and text[index - 1].isspace():
                index = min(self._line_end(index), limit) - 1
            index += 1
        return 0


def behind_backquote(text: str, index: int, limit: int | None = None) -> int:
    """Offset behind the next backquote that no backslash takes away; 0 where there is none."""
    found = _BACKQUOTED.match(text, index, len(text) if limit is None else limit)
    return found.end() if found else 0


def words_of(text: str) -> Iterator[Word]:
    """The words of a text with their quotes kept, operators and comments left out."""
    return (token.text for token in Lexer(text).tokens() if token.kind in {"word", "target"})


__all__ = ["PLACEHOLDER", "Lexer", "Token", "Word", "behind_backquote", "words_of"]
