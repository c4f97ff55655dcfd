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
        name = _chosen_from(node)
        source = self.evaluate(name, frame) if name is not None else None
        if isinstance(source, Keys) and len(source) <= self.config.limits.iterations:
            self._choose_entries(node.generators[0], source, inner, made)
            return made

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

    def _choose_entries(self, clause: ast.comprehension, source: Keys, inner: Frame, made: Keys) -> None:
        """Take over entries as they stand, with their places; an unknown value stays unless it is ruled out."""
        made.rest = source.rest
        for key, given in source.items():
            candidates = given.candidates if isinstance(given, Unknown) and not self.run.joined else ()
            verdicts = {self._chosen(clause, key, candidate, inner) for candidate in candidates}
            value = self.pick(given, (inner.qualified, str(key))) if False in verdicts else given
            chosen = True if candidates and value is given else self._chosen(clause, key, value, inner)
            if chosen is None and not isinstance(value, Unknown):
                made.rest = made.rest or Unknown("condition", inner.module.excerpt(clause.ifs[0]))
            elif chosen is not False:
                made[key] = value
                made.where.update({key: source.where[key]} if key in source.where else {})

    def _chosen(self, clause: ast.comprehension, key: Any, value: Any, inner: Frame) -> bool | None:
        self.assign(clause.target, (key, value), inner)
        verdicts = [self.condition(test, inner) for test in clause.ifs]
        return False if False in verdicts else None if None in verdicts else True

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


def _chosen_from(node: ast.DictComp) -> ast.Name | None:
    """`mapping` in `{key: value for key, value in mapping.items() if ...}`; None in any other comprehension."""
    match node:
        case ast.DictComp(
            key=ast.Name(id=key),
            value=ast.Name(id=value),
            generators=[
                ast.comprehension(
                    target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                    iter=ast.Call(func=ast.Attribute(value=ast.Name() as mapping, attr="items"), args=[], keywords=[]),
                )
            ],
        ) if (key, value) == (first, second):
            return mapping
    return None
