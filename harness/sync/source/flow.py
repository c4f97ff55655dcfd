"""What flows where inside one function: which fields of one object end up in which attributes of another."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from staticfire.harness.sync.source.expressions import chain
from staticfire.harness.sync.source.facts import Function
from staticfire.harness.sync.source.shapes import COPIERS, GATHERERS, SETTERS

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Put(NamedTuple):
    """An attribute that is assigned to.

    Attributes:
        base: Chain of the object.
        name: The attribute.
        line: Where.
        sources: Chains that the value may come from.
    """

    base: str
    name: str
    line: int
    sources: frozenset[str]


def node_of(tree: ast.Module, function: Function) -> _Function | None:
    """The node of a function in the tree of its file."""
    for node in ast.walk(tree):
        if isinstance(node, _Function) and node.name == function.name and node.lineno == function.line:
            return node
    return None


class Flow:
    """The assignments of one function, in whatever order they run.

    Args:
        node: The function.
    """

    def __init__(self, node: _Function) -> None:
        self._from: dict[str, set[str]] = defaultdict(set)
        self._constants: dict[str, list[str]] = {}
        self._targets: list[tuple[str, str, int, ast.expr]] = []
        for part in ast.walk(node):
            self._list(part)
        for part in ast.walk(node):
            self._note(part)

    def _list(self, node: ast.AST) -> None:
        """Texts that a name runs over."""
        match node:
            case (
                ast.For(target=ast.Name(id=name), iter=values)
                | ast.comprehension(target=ast.Name(id=name), iter=values)
            ) if isinstance(values, ast.Tuple | ast.List):
                texts = [element.value for element in values.elts if isinstance(element, ast.Constant)]
                self._constants[name] = [text for text in texts if isinstance(text, str)]

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value) if value:
                self._bind(target, value)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind(target, value)
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=args) if attr in GATHERERS:
                for argument in args:
                    self._from[chain(base)].update(self._direct(argument))
            case ast.Call(func=func, args=[base, key, value]) if chain(func) in SETTERS:
                for name in self._texts(key):
                    self._targets.append((chain(base), name, node.lineno, value))

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._bind(element, value)
            case ast.Attribute() if isinstance(value, ast.Call) and chain(value.func).rpartition(".")[2] in COPIERS:
                for keyword in value.keywords:  # `config.section = replace(config.section, field=…)`
                    if keyword.arg:
                        self._targets.append((chain(target), keyword.arg, keyword.value.lineno, keyword.value))
            case ast.Attribute(value=base, attr=attr):
                self._targets.append((chain(base), attr, target.lineno, value))
                self._from[chain(target)].update(self._direct(value))
            case ast.Name(id=name):
                self._from[name].update(self._direct(value))

    def _texts(self, node: ast.expr) -> list[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        return self._constants.get(node.id, []) if isinstance(node, ast.Name) else []

    def _direct(self, node: ast.expr) -> set[str]:
        """Chains in an expression."""
        found = set()
        for part in ast.walk(node):
            match part:
                case ast.Attribute() | ast.Name():
                    found.add(chain(part))
                case ast.Call(func=ast.Name(id="getattr"), args=[base, key, *_]):
                    found.update(f"{chain(base)}.{name}" for name in self._texts(key))
        return found

    def sources(self, node: ast.expr) -> frozenset[str]:
        """Every chain that the value of an expression may come from."""
        found: set[str] = set()
        pending = list(self._direct(node))
        while pending:
            item = pending.pop()
            if item and item not in found:
                found.add(item)
                pending.extend(self._from.get(item, ()))
        return frozenset(found)

    def puts(self) -> Iterator[Put]:
        """Every assignment to an attribute."""
        for base, name, line, value in self._targets:
            yield Put(base, name, line, self.sources(value))


def calls_of(node: _Function, lines: Sequence[int]) -> Iterable[ast.Call]:
    """The calls of a function that begin on some lines."""
    return [part for part in ast.walk(node) if isinstance(part, ast.Call) and part.lineno in lines]
