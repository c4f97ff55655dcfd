"""Arithmetic of a shell over decimal numbers and the variables that hold them; all else is not known."""

import re
from typing import Any

from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.shellnames import Assigned, assigned
from staticfire.harness.scan.shellstate import Variables

_TOKEN = re.compile(r"\s*(?:(0|[1-9]\d{0,18})(?![\w.#])|([A-Za-z_]\w*)|(\*\*|[-+*/%()]))")
_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d{0,18})")
_STATEMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*([-+*]?)=(?!=)(.*)", re.DOTALL)
_STEP = re.compile(r"\s*(?:([A-Za-z_]\w*+)\s*(\+\+|--)|(\+\+|--)\s*([A-Za-z_]\w*+))\s*")
_NAMES = re.compile(r"(?<!\w)[A-Za-z_]\w*+")
_LENGTH = 200
_RANGE = 2**63


def computed(text: str, variables: Variables) -> Any:
    """The value of an expression without assignments as the text that it becomes; not known where it is another."""
    why = Unknown("shell", f"$(({text[:40]}))")
    if len(text) > _LENGTH or "--" in text or "++" in text:
        return why
    number = _Sum(text, variables).value()
    return why if number is None else str(number)


def run(text: str, variables: Variables) -> None:
    """Do what `((...))` or `let` assigns; what is more than one plain assignment leaves its names not known."""
    names = assigned(text).names
    variables.forget(indirect(text, variables))
    if (step := _STEP.fullmatch(text)) is not None:
        name, sign = step[1] or step[4], (step[2] or step[3])[0]
        variables.set(name, computed(f"{name}{sign}1", variables))
        return
    found = _STATEMENT.fullmatch(text) if len(text) <= _LENGTH else None
    if found is not None and names == {found[1]}:
        expression = found[3] if not found[2] else f"{found[1]}{found[2]}({found[3]})"
        variables.set(found[1], computed(expression, variables))
        return
    variables.forget(names)


def indirect(text: str, variables: Variables) -> Assigned:
    """What the variables of an expression assign: the value of each is an expression in its turn."""
    names: set[str] = set()
    for name in set(_NAMES.findall(text)):
        value = variables.value(name)
        if isinstance(value, str) and ("=" in value or "++" in value or "--" in value):
            names |= assigned(value).names
    return Assigned(frozenset(names))


class _Sum:
    """Reads one expression; None wherever it is not sure."""

    def __init__(self, text: str, variables: Variables) -> None:
        self._variables = variables
        self._tokens: list[str] = []
        index = 0
        while index < len(text.rstrip()):
            found = _TOKEN.match(text, index)
            if found is None:
                self._tokens = ["?"]
                break
            self._tokens.append(found[0].strip())
            index = found.end()
        self._index = 0

    def value(self) -> int | None:
        """The number."""
        try:
            number = self._added()
        except (ValueError, ZeroDivisionError, RecursionError):
            return None
        return number if self._index == len(self._tokens) and -_RANGE < number < _RANGE else None

    def _next(self, among: set[str]) -> str:
        if self._index < len(self._tokens) and self._tokens[self._index] in among:
            self._index += 1
            return self._tokens[self._index - 1]
        return ""

    def _added(self) -> int:
        number = self._multiplied()
        while operator := self._next({"+", "-"}):
            other = self._multiplied()
            number = number + other if operator == "+" else number - other
        return number

    def _multiplied(self) -> int:
        number = self._signed()
        while operator := self._next({"*", "/", "%"}):
            other = self._signed()
            if abs(number) >= _RANGE or abs(other) >= _RANGE:
                raise ValueError("beyond what a shell holds")
            quotient = abs(number) // abs(other) if operator != "*" else 0
            quotient = quotient if (number < 0) == (other < 0) else -quotient
            number = {"*": number * other, "/": quotient, "%": number - quotient * other}[operator]
        return number

    def _signed(self) -> int:
        if operator := self._next({"+", "-"}):
            if self._index < len(self._tokens) and self._tokens[self._index] == operator:
                raise ValueError("a step, not a sign")
            return self._signed() if operator == "+" else -self._signed()
        if self._next({"("}):
            number = self._added()
            if not self._next({")"}):
                raise ValueError("not closed")
            return number
        return self._atom()

    def _atom(self) -> int:
        if self._index >= len(self._tokens):
            raise ValueError("nothing there")
        token = self._tokens[self._index]
        self._index += 1
        if token.isdigit():
            return int(token)
        if not token[0].isidentifier():
            raise ValueError("no number")
        value = self._variables.value(token)
        if not isinstance(value, str) or not _NUMBER.fullmatch(value) or self._variables.items(token) is not None:
            raise ValueError("not known")
        return int(value)


__all__ = ["computed", "indirect", "run"]
