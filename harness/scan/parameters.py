"""Pytest parametrization, read from decorators: axes of values with ids, their product, guards."""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from staticfire.harness.scan import containers, pure
from staticfire.harness.scan.base import Guard, Unknown
from staticfire.harness.scan.branches import skips
from staticfire.harness.scan.interpreter import Interpreter
from staticfire.harness.scan.modules import Module
from staticfire.harness.scan.names import fixture_call
from staticfire.harness.scan.operators import truth
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import Frame, Param
from staticfire.harness.scan.values import Class, External, Function, Keys, Member, unmixed

_ROWS = 5_000
"""Sets of values of one axis that are read."""
_MARKS = frozenset({"skipif", "skip", "xfail"})
_IGNORED = frozenset({"parametrize", "fixture", "usefixtures", "asyncio", "staticmethod", "classmethod", "timeout"})


@dataclass(frozen=True, slots=True)
class Case:
    """One set of values of an axis.

    Attributes:
        values: Of each name of the axis, in order.
        id: What pytest calls it.
        guards: Marks of this set alone.
    """

    values: tuple[Any, ...]
    id: str
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    """One `parametrize`, or one fixture with `params`.

    Attributes:
        names: Arguments that it sets.
        cases: Its sets of values.
        indirect: Names that are passed to the fixture of that name instead.
        open: Whether there may be further sets that are not known.
    """

    names: tuple[str, ...]
    cases: tuple[Case, ...]
    indirect: frozenset[str] = frozenset()
    open: bool = False


class Parameters:
    """Reads axes and guards.

    Args:
        interpreter: Evaluates what stands in decorators.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    def axes(self, decorators: list[tuple[ast.expr, Frame]]) -> list[Axis]:
        """The axes of decorators, in the order in which pytest joins their ids."""
        found = []
        for node, frame in decorators:
            if isinstance(node, ast.Call) and terminal(node.func) == "parametrize":
                axis = self._axis(node, frame)
                if axis is not None:
                    found.append(axis)
        return found

    def _axis(self, node: ast.Call, frame: Frame) -> Axis | None:
        evaluate = self._interpreter.evaluate
        arguments = dict(zip(("argnames", "argvalues", "indirect", "ids"), node.args, strict=False))
        arguments.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg})
        if "argnames" not in arguments:
            return None
        raw = evaluate(arguments["argnames"], frame)
        if isinstance(raw, str):
            names = tuple(part.strip() for part in raw.split(",") if part.strip())
        elif isinstance(raw, list | tuple) and all(isinstance(item, str) for item in raw):
            names = tuple(str(item) for item in raw)
        else:
            return None
        ids = evaluate(arguments["ids"], frame) if "ids" in arguments else None
        indirect = evaluate(arguments["indirect"], frame) if "indirect" in arguments else False
        passed = frozenset(names if indirect is True else indirect if isinstance(indirect, list | tuple) else ())
        values = evaluate(arguments["argvalues"], frame) if "argvalues" in arguments else Unknown("parameter", "")
        return self.cases(names, values, ids, passed, frame)

    def cases(
        self,
        names: tuple[str, ...],
        values: Any,
        ids: Any,
        indirect: frozenset[str],
        frame: Frame,
    ) -> Axis:
        """An axis out of evaluated values and ids."""
        rows = containers.sequence(values)
        opened = rows is None
        if rows is not None and len(rows) > _ROWS:
            rows, opened = rows[:_ROWS], True
        if rows is None:
            why = values if isinstance(values, Unknown) else Unknown("parameter", ",".join(names))
            rows = [item for item in values if not hasattr(item, "why")] if isinstance(values, list | tuple) else []
            if not rows:
                return Axis(
                    names, (Case(tuple(Unknown(why.reason, why.detail) for _ in names), "?"),), indirect, open=True
                )
        cases = []
        for index, row in enumerate(rows):
            cases.append(self._case(names, row, index, ids, frame))
        return Axis(names, _distinct(cases), indirect, open=opened)

    def _case(self, names: tuple[str, ...], row: Any, index: int, ids: Any, frame: Frame) -> Case:
        guards: tuple[Guard, ...] = ()
        own_id: str | None = None
        if isinstance(row, Param):
            own_id = row.id
            guards = tuple(guard for node in row.marks if (guard := self.guard(node, row.frame)) is not None)
            values = row.values
        elif len(names) == 1:
            values = (row,)
        else:
            parts = containers.sequence(row)
            values = tuple(parts) if parts is not None and not isinstance(row, str) else ()
        if len(values) != len(names):
            why = row if isinstance(row, Unknown) else Unknown("parameter", ",".join(names))
            values = tuple(Unknown(why.reason, why.detail) for _ in names)
        name = own_id or self._given_id(ids, index, values, names, frame)
        return Case(values, name, guards)

    def _given_id(self, ids: Any, index: int, values: tuple[Any, ...], names: tuple[str, ...], frame: Frame) -> str:
        if isinstance(ids, list | tuple):
            if index < len(ids) and isinstance(ids[index], str | int | float | bool):
                return str(ids[index])
            if index < len(ids) and ids[index] is not None:
                return "?"
        parts = []
        for name, value in zip(names, values, strict=True):
            made: Any = None
            if isinstance(ids, Function):
                made = self._interpreter.call_function(ids, [value], Keys())
            elif isinstance(ids, External):
                made = pure.apply(ids.name.removeprefix("builtins."), [value], {}, self._interpreter.config.limits)
            if ids is not None and isinstance(made, str | int | float | bool):
                parts.append(str(made))
            else:
                parts.append(value_id(value, name, index))
        del frame
        return "-".join(parts)

    def guards(self, decorators: list[tuple[ast.expr, Frame]]) -> list[Guard]:
        """Conditions that decorators put over a test."""
        found = []
        for node, frame in decorators:
            guard = self.guard(node, frame)
            if guard is not None:
                found.append(guard)
        return found

    def module_guards(self, module: Module) -> list[Guard]:
        """Conditions under which a whole module is skipped: `pytest.skip(..., allow_module_level=True)`."""
        if "allow_module_level" not in module.text:
            return []
        frame = Frame(module, module.values, qualified=module.shown)
        found: list[Guard] = []
        for statement in module.tree.body:
            test = statement.test if isinstance(statement, ast.If) else None
            last = statement.body[-1] if isinstance(statement, ast.If) else statement
            if skips(last):
                decided = truth(self._interpreter.evaluate(test, frame)) if test is not None else True
                place = module.place(statement)
                found.append(Guard("skip", module.excerpt(test if test is not None else statement), place, decided))
        return found

    def guard(self, node: ast.expr, frame: Frame) -> Guard | None:
        """The condition that one decorator or mark expresses, None if it expresses none."""
        target = node.func if isinstance(node, ast.Call) else node
        name = terminal(target)
        place, text = frame.module.place(node), frame.module.excerpt(node)
        if name in _MARKS:
            decided: bool | None = True
            if name != "skip":
                decided = None
                conditions = node.args[:1] if isinstance(node, ast.Call) else []
                if isinstance(node, ast.Call):
                    conditions = conditions or [kw.value for kw in node.keywords if kw.arg == "condition"]
                if conditions:
                    decided = truth(self._interpreter.evaluate(conditions[0], frame))
                elif name == "xfail":
                    decided = True
            return Guard(name, text, place, decided)  # type: ignore[arg-type]
        if name in _IGNORED or not isinstance(node, ast.Call):
            return None
        if isinstance(target, ast.Attribute) and _is_mark(target):
            return None
        if any(word in name for word in ("gpu", "platform", "capability", "skip", "require", "device")):
            return Guard("marker", text, place, None)
        return None


def _is_mark(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Attribute) and node.value.attr == "mark"


def value_id(value: Any, name: str, index: int) -> str:  # noqa: PLR0911 - one kind of value, one line
    """What pytest calls a value that was given no id."""
    value = unmixed(value)
    if isinstance(value, str):
        return value.encode("unicode_escape").decode("ascii")
    if value is None or isinstance(value, bool | int | float | complex):
        return str(value)
    if isinstance(value, Member):
        return f"{value.cls.name}.{value.name}"
    if isinstance(value, Class):
        return value.name
    if isinstance(value, Function) and value.name != "<lambda>":
        return value.name
    if isinstance(value, External):
        parts = value.name.split(".")
        if parts[0] == "torch" and parts[-1].islower():
            return f"{name}{index}"
        if len(parts) > 2 and parts[-1].isupper():
            return ".".join(parts[-2:])
        return parts[-1]
    return f"{name}{index}"


def _distinct(cases: list[Case]) -> tuple[Case, ...]:
    """Ids made distinct as pytest does."""
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.id] = counts.get(case.id, 0) + 1
    if all(count == 1 for count in counts.values()):
        return tuple(cases)
    taken = set(counts)
    suffixes: dict[str, int] = {}
    made = []
    for case in cases:
        name = case.id
        if counts[name] > 1:
            glue = "_" if name and name[-1].isdigit() else ""
            number = suffixes.get(name, 0)
            while f"{name}{glue}{number}" in taken:
                number += 1
            suffixes[name] = number + 1
            name = f"{name}{glue}{number}"
            taken.add(name)
        made.append(Case(case.values, name, case.guards))
    return tuple(made)


def product(axes: list[Axis], limit: int) -> tuple[list[tuple[Case, ...]], int]:
    """The first combinations of some axes, and how many there are beyond them."""
    total = 1
    for axis in axes:
        total *= len(axis.cases)
    # The first axis varies fastest nowhere that matters; ids keep the order of the axes.
    combinations: Iterator[tuple[Case, ...]] = itertools.product(*(axis.cases for axis in axes))
    return list(itertools.islice(combinations, limit)), max(0, total - limit)


def decorators_of(
    interpreter: Interpreter,
    module: Module,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    owners: tuple[Class, ...],
) -> list[tuple[ast.expr, Frame]]:
    """Decorators and `pytestmark`s over a function, closest first, each with the frame it is evaluated in."""
    outer = Frame(module, {}, qualified=module.shown)
    inner = outer
    for owner in owners:
        inner = Frame(module, interpreter.members(owner), inner, qualified=owner.name)
    found = [(node, inner) for node in reversed(function.decorator_list)]
    for owner in reversed(owners):
        found.extend((node, outer) for node in _pytestmark(owner.node.body))
        found.extend((node, outer) for node in reversed(owner.node.decorator_list))
    if module.marks is None:
        module.marks = _pytestmark(module.tree.body)
    found.extend((node, outer) for node in module.marks)
    return found


def _pytestmark(body: list[ast.stmt]) -> list[ast.expr]:
    for statement in body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in statement.targets
        ):
            value = statement.value
            return list(value.elts) if isinstance(value, ast.List | ast.Tuple) else [value]
    return []


__all__ = ["Axis", "Case", "Parameters", "decorators_of", "fixture_call", "product"]
