"""Evaluate comprehensions."""

import ast
from collections.abc import Callable
from typing import Any

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.literals import Literals
from staticfire.harness.scan.state import (
    Frame,
)
from staticfire.harness.scan.values import (
    Items,
    Keys,
    Rest,
)

_HOPELESS = 16
"""Unknown elements in a row after which the rest of a comprehension is not looked at."""


class _Hopeless(Exception):  # noqa: N818 - a way out, not a fault
    """A comprehension of which nothing will be known."""


class Comprehensions(Literals):
    """Evaluation of comprehensions."""

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame) -> Any:
        made = Items()
        inner = Frame(frame.module, {}, frame, frame.function, frame.qualified, given=frame.given, comprehension=True)

        def add() -> None:
            value = self.evaluate(node.elt, inner)
            made.append(value)
            if (
                isinstance(value, Unknown)
                and len(made) >= _HOPELESS
                and all(isinstance(v, Unknown) for v in made[-_HOPELESS:])
            ):
                raise _Hopeless

        try:
            why = self.generate(node.generators, 0, inner, add)
        except _Hopeless:
            why = made[-1]
        if why is not None:
            made.append(Rest(why))
        if isinstance(node, ast.SetComp):
            return set(made) if all(containers.hashable(item) for item in made) else Unknown("value", "set")
        return made

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Any:
        made = Keys()
        inner = Frame(frame.module, {}, frame, frame.function, frame.qualified, given=frame.given, comprehension=True)

        def add() -> None:
            key = self.evaluate(node.key, inner)
            value = self.evaluate(node.value, inner)
            if isinstance(key, Unknown) or not containers.hashable(key):
                made.rest = key if isinstance(key, Unknown) else Unknown("value", "key")
            else:
                made[key] = value
                made.where[key] = frame.module.place(node.key)

        why = self.generate(node.generators, 0, inner, add)
        if why is not None:
            made.rest = why
        return made

    def generate(
        self, generators: list[ast.comprehension], index: int, inner: Frame, emit: Callable[[], None]
    ) -> Unknown | None:
        """Run through the clauses of a comprehension; why it is open at the end, None if it is not."""
        if index == len(generators):
            emit()
            return None
        clause = generators[index]
        source = self.evaluate(clause.iter, inner)
        elements = containers.sequence(source)
        if elements is None:
            return source if isinstance(source, Unknown) else Unknown("loop", inner.module.excerpt(clause.iter))
        why: Unknown | None = None
        if len(elements) > self.config.limits.iterations:
            why, elements = Unknown("limit", "loop"), elements[: self.config.limits.iterations]
        for element in elements:
            self.assign(clause.target, element, inner)
            verdicts = [self.condition(test, inner) for test in clause.ifs]
            if False in verdicts:
                continue
            if None in verdicts:
                why = Unknown("condition", inner.module.excerpt(clause.ifs[0]))
                continue
            why = self.generate(generators, index + 1, inner, emit) or why
        return why
