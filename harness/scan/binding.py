"""Bind targets to values."""

import ast
from typing import Any

from staticfire.harness.scan import containers, operators, versions
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.expressions import Expressions
from staticfire.harness.scan.state import (
    Frame,
)
from staticfire.harness.scan.values import (
    Class,
    External,
    Function,
    Instance,
    Items,
    Keys,
    Made,
    Rest,
)


class Binding(Expressions):
    """Assignments, imports, deletions."""

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Bind a target to a value."""
        match target:
            case ast.Name():
                frame.names[target.id] = value
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value, frame)
            case ast.Starred():
                self.assign(target.value, value, frame)
            case ast.Attribute():
                base = self.evaluate(target.value, frame)
                if isinstance(base, Instance):
                    base.attributes[target.attr] = value
                elif isinstance(base, Made):
                    base.keywords[target.attr] = value
                    base.keywords.where[target.attr] = frame.module.place(target)
                elif isinstance(base, External):
                    self.run.patched.append(frame.module.excerpt(target))
            case ast.Subscript():
                self._store(target, value, frame)

    def _unpack(self, targets: list[ast.expr], value: Any, frame: Frame) -> None:
        elements = containers.sequence(value)
        stars = [index for index, target in enumerate(targets) if isinstance(target, ast.Starred)]
        if elements is None or (len(elements) != len(targets) and not stars) or len(elements) < len(targets) - 1:
            why = value if isinstance(value, Unknown) else Unknown("unpacking", "")
            why = Unknown(why.reason, why.detail)
            for target in targets:
                self.assign(target, why, frame)
            return
        elements = list(elements)
        if stars:
            star, after = stars[0], len(targets) - stars[0] - 1
            middle = elements[star : len(elements) - after]
            elements = [*elements[:star], Items(middle), *elements[len(elements) - after :]]
        for target, element in zip(targets, elements, strict=True):
            self.assign(target, element, frame)

    def _store(self, target: ast.Subscript, value: Any, frame: Frame) -> None:
        base = self.evaluate(target.value, frame)
        key = self.evaluate(target.slice, frame) if not isinstance(target.slice, ast.Slice) else Unknown("subscript")
        if isinstance(base, External) and base.name == "os.environ":
            self.set_environment(key, value, frame.module.place(target))
        elif isinstance(base, dict):
            if isinstance(key, Unknown) or not containers.hashable(key):
                if isinstance(base, Keys):
                    base.rest = key if isinstance(key, Unknown) else Unknown("value", "key")
                return
            base[key] = value
            if isinstance(base, Keys):
                base.where[key] = frame.module.place(target)
        elif isinstance(base, list):
            if isinstance(key, int) and -len(base) <= key < len(base):
                base[key] = value
            elif isinstance(key, Unknown):
                base[:] = [Rest(key)]

    def _augment(self, statement: ast.AugAssign, frame: Frame) -> None:
        current = self.evaluate(_loaded(statement.target), frame)
        value = self.evaluate(statement.value, frame)
        if isinstance(statement.op, ast.Add) and isinstance(current, list):
            containers.extend(current, value)
            if len(current) > self.config.limits.elements:
                raise containers.TooLarge
            return
        if isinstance(statement.op, ast.BitOr) and isinstance(current, dict):
            containers.merge(current, value)
            return
        self.assign(
            statement.target,
            operators.combine(type(statement.op), current, value, statement, frame.module, self.config.limits.elements),
            frame,
        )

    def _delete(self, statement: ast.Delete, frame: Frame) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Name):
                frame.names.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                self._remove(self.evaluate(target.value, frame), self.evaluate(target.slice, frame))
            elif isinstance(target, ast.Attribute) and isinstance(base := self.evaluate(target.value, frame), Instance):
                base.attributes.pop(target.attr, None)

    def _remove(self, base: Any, key: Any) -> None:
        if isinstance(base, External) and base.name == "os.environ":
            base = self.run.environment
        if isinstance(base, dict) and containers.hashable(key) and not isinstance(key, Unknown):
            base.pop(key, None)
        elif isinstance(base, Keys):
            base.rest = key if isinstance(key, Unknown) else Unknown("value", "key")
        elif isinstance(base, list) and isinstance(key, int) and not any(isinstance(item, Rest) for item in base):
            del base[key : key + 1 or None]
        elif isinstance(base, list):
            base[:] = [Rest(Unknown("value", "del"))]

    def _define(self, statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, frame: Frame) -> None:
        closure = None if frame.names is frame.module.values else frame
        if isinstance(statement, ast.ClassDef):
            frame.names[statement.name] = Class(statement, frame.module, closure)
        else:
            made = Function(statement, frame.module, closure=closure, name=statement.name)
            frame.names[statement.name] = made

    def _import(self, statement: ast.Import, frame: Frame) -> None:
        for alias in statement.names:
            top = alias.name.partition(".")[0]
            wanted = alias.name if alias.asname is not None else top
            frame.names[alias.asname or top] = self.imported(frame.module, 0, wanted, None)

    def _import_from(self, statement: ast.ImportFrom, frame: Frame) -> None:
        for alias in statement.names:
            if alias.name != "*":
                value = self.imported(frame.module, statement.level, statement.module or "", alias.name)
                if alias.name in {"__version__", "version_info"} and isinstance(value, External):
                    found = versions.installed(value.name, self.config.versions)
                    value = value if found is NotImplemented else found
                frame.names[alias.asname or alias.name] = value


def _loaded(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target
