"""Evaluate literals: constants, lists, dicts, f-strings."""

import ast
from typing import Any

from staticfire.harness.scan import containers, forms, operators
from staticfire.harness.scan.access import Access
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.state import (
    Frame,
)
from staticfire.harness.scan.values import (
    Items,
    Joined,
    Keys,
    Text,
    deeply_known,
)


class Literals(Access):
    """Evaluation of literals."""

    def _constant(self, node: ast.Constant, _frame: Frame) -> Any:
        return Unknown("value", "...") if node.value is Ellipsis else node.value

    def _list(self, node: ast.List, frame: Frame) -> Any:
        items = Items(self._elements(node.elts, frame))
        if items and forms.command_words(items):
            self.command(items, node, frame)
        return items

    def _elements(self, nodes: list[ast.expr], frame: Frame) -> list[Any]:
        made: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                containers.extend(made, self.evaluate(node.value, frame))
            elif isinstance(node, ast.Constant):
                value = node.value
                made.append(Text(value, frame.module.place(node)) if type(value) is str and len(nodes) < 500 else value)
            else:
                made.append(self.evaluate(node, frame))
            if len(made) > self.config.limits.elements:
                raise containers.TooLarge
        containers.charge(len(made))
        return made

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Any:
        return tuple(self._elements(node.elts, frame))

    def _set(self, node: ast.Set, frame: Frame) -> Any:
        elements = self._elements(node.elts, frame)
        if not all(containers.hashable(item) for item in elements):
            return Unknown("value", "set")
        return set(elements)

    def _dict(self, node: ast.Dict, frame: Frame) -> Any:
        made = Keys()
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(value_node, frame)
            if key_node is None:
                containers.merge(made, value)
                continue
            key = self.evaluate(key_node, frame)
            if isinstance(key, Unknown) or not containers.hashable(key):
                made.rest = key if isinstance(key, Unknown) else Unknown("value", "key")
                continue
            made[key] = value
            given = frame.given.get(value_node.id) if isinstance(value_node, ast.Name) else None
            made.where[key] = given or frame.module.place(key_node)
        return made

    def _joined(self, node: ast.JoinedStr, frame: Frame) -> Any:
        pieces: list[Any] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                pieces.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.evaluate(part.value, frame)
            plain = isinstance(value, str | int | float | bool | None) and not (
                isinstance(value, int) and value.bit_length() > operators.BITS
            )
            if plain and part.format_spec is None and part.conversion in {-1, 115}:
                pieces.append(str(value))
            elif isinstance(value, Joined):
                pieces.extend(value.pieces)
            elif plain and isinstance(part.format_spec, ast.JoinedStr):
                pieces.append(self._formatted(value, part.format_spec, frame))
            elif deeply_known(value) and part.format_spec is None and len(repr(value)) < 10_000:
                pieces.append(repr(value) if part.conversion == 114 else str(value))
            else:
                pieces.append(
                    value if isinstance(value, Unknown) else Unknown("value", frame.module.excerpt(part.value))
                )
        return operators.joined(pieces)

    def _formatted(self, value: Any, spec: ast.JoinedStr, frame: Frame) -> Any:
        text = self._joined(spec, frame)
        if not isinstance(text, str) or len(text) > 8 or any(len(run) > 3 for run in operators.digit_runs(text)):
            return Unknown("value", "format")
        try:
            return format(value, text)
        except (ValueError, TypeError):
            return Unknown("error", "format")
