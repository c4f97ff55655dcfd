"""The commands of a shell's text, as far as blocks go: what is in which branch, loop, function or subshell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from staticfire.harness.scan.shelllex import Lexer, Token, Word

DEPTH = 40
"""Blocks within blocks that are followed."""
_ENDS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_SEPARATORS = frozenset({";", "&", "\n", "&&", "||", "|", "|&"})
_CASES = frozenset({";;", ";&", ";;&"})
_LOOPS = frozenset({"for", "select", "while", "until"})

Kind = Literal["command", "group", "subshell", "branches", "loop", "each", "arithmetic", "function"]


class TooDeep(Exception):  # noqa: N818 - a bound, not a fault
    """Blocks are nested too deeply."""


@dataclass(slots=True)
class Node:
    """A command.

    Attributes:
        kind: A simple command, `{...}`, `(...)`, `if` or `case`, a loop without values of its own, `for` or `select`
            over words, `((...))`, or a definition of a function.
        start: Offset of its first character.
        end: Offset after its last one.
        words: Of a simple command; the values of `for`, None where it has no `in`.
        targets: What the redirections of a simple command go to.
        descriptors: Variables that its redirections assign.
        name: The variable of `for` and `select`, the name of a function.
        blocks: Of branches and loops: what is run to decide, and what is run then.
        closed: Whether one of the branches is for all other cases.
        falls: Whether a branch may go on into the next one.
        text: The inside of `((...))`.
    """

    kind: Kind
    start: int
    end: int = 0
    words: list[Word] | None = None
    targets: list[Word] = field(default_factory=list)
    descriptors: list[str] = field(default_factory=list)
    name: str = ""
    blocks: list[tuple[list["Item"], list["Item"]]] = field(default_factory=list)
    closed: bool = False
    falls: bool = False
    text: str = ""


@dataclass(slots=True)
class Item:
    """A command in a list.

    Attributes:
        node: The command.
        joint: `&&` or `||` before it, else empty.
        apart: Whether it runs in a process of its own: in a pipeline, or in the background.
    """

    node: Node
    joint: str = ""
    apart: bool = False


def parse(text: str) -> list[Item]:
    """The commands of a text; what is no shell is read as well as it goes.

    Raises:
        TooDeep: Blocks are nested too deeply.
    """
    parser = _Parser(list(Lexer(text).tokens()))
    found: list[Item] = []
    while not parser.done:
        found.extend(parser.items(frozenset()))
        parser.index += 1  # an end without a beginning
    return found


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.index = 0
        self._depth = 0

    @property
    def done(self) -> bool:
        return self.index >= len(self._tokens)

    def _word(self) -> str:
        """The word that comes next, empty where none does."""
        if self.done or self._tokens[self.index].kind != "word":
            return ""
        return str(self._tokens[self.index].text)

    def _operator(self) -> str:
        if self.done or self._tokens[self.index].kind != "operator":
            return ""
        return str(self._tokens[self.index].text)

    def _last(self) -> int:
        return self._tokens[min(self.index, len(self._tokens)) - 1].text.end if self.index else 0

    def items(self, ends: frozenset[str]) -> list[Item]:
        """Commands up to a word that ends or divides a block, which is left where it is."""
        self._depth += 1
        if self._depth > DEPTH:
            raise TooDeep
        found: list[Item] = []
        joint, piped = "", False
        while not self.done:
            operator = self._operator()
            if operator in _SEPARATORS:
                self.index += 1
                if operator in {"|", "|&"} and found:
                    found[-1].apart = piped = True
                elif operator == "&" and found:
                    for item in reversed(found):  # all that is joined to it
                        item.apart = True
                        if not item.joint:
                            break
                elif operator in {"&&", "||"}:
                    joint = operator
                elif operator == ";" or not (joint or piped):
                    joint, piped = "", False
                continue
            if operator == ")" or operator in _CASES or self._word() in _ENDS or self._word() in ends:
                break
            node = self._command()
            if node is not None:
                found.append(Item(node, joint, piped))
                joint, piped = "", False
        self._depth -= 1
        return found

    def _command(self) -> Node | None:
        token = self._tokens[self.index]
        word, start = self._word(), token.text.start
        if token.kind == "arithmetic":
            self.index += 1
            node = Node("arithmetic", start, text=str(token.text))
        elif self._operator() == "(":
            node = self._group("subshell", start)
        elif word == "{":
            node = self._group("group", start)
        elif word in {"!", "time"}:
            self.index += 1
            return None if self.done or self._operator() in _SEPARATORS else self._command()
        elif word == "if":
            node = self._if(start)
        elif word == "case":
            node = self._case(start)
        elif word in _LOOPS:
            node = self._loop(word, start)
        elif word == "function" or (word and self._is_definition()):
            node = self._function(start)
        elif word == "coproc":
            node = self._coprocess(start)
        else:
            return self._simple(start)
        self._redirections(node)
        node.end = self._last()
        return node

    def _redirections(self, node: Node) -> None:
        while not self.done and self._redirection(node, self._tokens[self.index]):
            self.index += 1

    @staticmethod
    def _redirection(node: Node, token: Token) -> bool:
        """Keep a part of a redirection; whether it was one."""
        if token.kind == "target":
            node.targets.append(token.text)
        elif token.kind == "descriptor":
            node.descriptors.append(str(token.text))
        else:
            return False
        return True

    def _simple(self, start: int) -> Node:
        node = Node("command", start, words=[])
        assert node.words is not None
        while not self.done:
            token = self._tokens[self.index]
            test = bool(node.words) and node.words[0] == "[["
            if token.kind == "operator" and not (test and token.text != "\n"):
                # A parenthesis in the middle is no shell; whatever it is, it is over at the end of the line.
                if token.text != "(":
                    break
            elif not self._redirection(node, token) and token.kind == "word":
                node.words.append(token.text)
            node.end = token.text.end
            self.index += 1
            if test and token.text == "]]":
                break
        if not (node.words or node.targets or node.descriptors):
            self.index += 1
        return node

    def _group(self, kind: Kind, start: int) -> Node:
        self.index += 1
        node = Node(kind, start, blocks=[([], self.items(frozenset()))])
        if (self._operator() == ")") if kind == "subshell" else (self._word() == "}"):
            self.index += 1
        return node

    def _if(self, start: int) -> Node:
        node = Node("branches", start)
        while self._word() in {"if", "elif"}:
            self.index += 1
            condition = self.items(frozenset())
            if self._word() == "then":
                self.index += 1
            node.blocks.append((condition, self.items(frozenset())))
        if self._word() == "else":
            self.index += 1
            node.blocks.append(([], self.items(frozenset())))
            node.closed = True
        if self._word() == "fi":
            self.index += 1
        return node

    def _case(self, start: int) -> Node:
        node = Node("branches", start)
        self.index += 1
        while not self.done and self._word() != "in":
            node.targets.append(self._tokens[self.index].text)
            self.index += 1
        self.index += 1
        while not self.done and self._word() != "esac":
            pattern = self._pattern()
            if self._word() == "esac":
                break
            self.index += 1
            node.closed = node.closed or [one for one in pattern if one not in {"(", "\n"}] == ["*"]
            node.blocks.append(([], self.items(frozenset())))
            if self._operator() in _CASES:
                node.falls = node.falls or self._operator() != ";;"
                self.index += 1
            elif self._word() != "esac":
                break
            while self._operator() == "\n":
                self.index += 1
        if self._word() == "esac":
            self.index += 1
        return node

    def _pattern(self) -> list[str]:
        """The words before a branch of `case`."""
        first = self.index
        while not self.done and str(self._tokens[self.index].text) not in {")", "esac"}:
            self.index += 1
        return [str(token.text) for token in self._tokens[first : self.index]]

    def _loop(self, word: str, start: int) -> Node:
        self.index += 1
        node = Node("loop" if word in {"while", "until"} else "each", start)
        condition: list[Item] = []
        if node.kind == "loop":
            condition = self.items(frozenset())
        elif not self.done and self._tokens[self.index].kind == "arithmetic":
            node.kind, node.text = "loop", str(self._tokens[self.index].text)
            self.index += 1
        else:
            node.name = self._word()
            self.index += 1
            self._values(node, word)
        while self._operator() in {";", "\n"}:
            self.index += 1
        braced = self._word() == "{"
        if self._word() in {"do", "{"}:
            self.index += 1
        node.blocks.append((condition, self.items(frozenset())))
        if self._word() == ("}" if braced else "done"):
            self.index += 1
        return node

    def _values(self, node: Node, word: str) -> None:
        while self._operator() == "\n":
            self.index += 1
        if self._word() != "in":
            return
        self.index += 1
        node.words = []
        while not self.done and self._tokens[self.index].kind == "word":
            node.words.append(self._tokens[self.index].text)
            self.index += 1
        if word == "select":
            node.words = None  # whoever sits there chooses

    def _is_definition(self) -> bool:
        following = self._tokens[self.index + 1 : self.index + 3]
        return [str(token.text) for token in following if token.kind == "operator"] == ["(", ")"]

    def _function(self, start: int) -> Node:
        if self._word() == "function":
            self.index += 1
        node = Node("function", start, name=self._word())
        self.index += 1
        if [str(token.text) for token in self._tokens[self.index : self.index + 2]] == ["(", ")"]:
            self.index += 2
        while self._operator() == "\n":
            self.index += 1
        if not self.done and (body := self._command()) is not None:
            node.blocks.append(([], [Item(body)]))
        return node

    def _coprocess(self, start: int) -> Node:
        self.index += 1
        following = self._tokens[self.index + 1 : self.index + 2]
        named = bool(following) and following[0].text in {"{", "(", "if", "case", *_LOOPS}
        node = Node("subshell", start, name="COPROC")
        if named:
            node.name = self._word()
            self.index += 1
        if not self.done and self._operator() not in _SEPARATORS and (body := self._command()) is not None:
            node.blocks.append(([], [Item(body)]))
        return node


__all__ = ["Item", "Node", "TooDeep", "parse"]
