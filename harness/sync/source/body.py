"""What one function does."""

import ast
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final

from staticfire.harness.sync.source.expressions import (
    DOTTED,
    argument,
    chain,
    chains,
    copied,
    decoded,
    replaces_none,
    types,
)
from staticfire.harness.sync.source.facts import ITEM, Call, Write
from staticfire.harness.sync.source.shapes import MAPPING, SETTER, SETTERS

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Body:
    """Collects what one function does, functions defined in it included; not those that it hands to a method to run.

    Args:
        node: The function.
    """

    def __init__(self, node: FunctionNode) -> None:
        self.node = node
        self.handed: list[FunctionNode] = []
        self.calls: list[Call] = []
        self.writes: list[Write] = []
        self.loads: dict[str, list[int]] = {}
        self.assigns: dict[str, list[str]] = {}
        self.rebound: set[str] = set()
        self.texts: list[str] = []
        self.constants: dict[str, list[str]] = {}
        self.classes: list[ast.ClassDef] = []

    def visit(self, node: ast.AST) -> None:
        """Note what a node does."""
        visitor = _VISITORS.get(type(node))
        if visitor is not None:
            visitor(self, node)
        else:
            for field in node._fields:  # `ast.iter_child_nodes` does the same, at twice the time
                value = getattr(node, field, None)
                if isinstance(value, list):
                    for child in value:
                        if isinstance(child, ast.AST):
                            self.visit(child)
                elif isinstance(value, ast.AST):
                    self.visit(value)

    def visit_all(self, nodes: Iterable[ast.AST]) -> None:
        """Note what some nodes do."""
        for node in nodes:
            self.visit(node)

    def _constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and len(node.value) < 200 and DOTTED.fullmatch(node.value):
            self.texts.append(node.value)

    def _attribute(self, node: ast.expr) -> None:
        """A chain that is read, and what its calls and subscripts are given."""
        found = chain(node)
        if found and "." in found:
            self.loads.setdefault(found, []).append(node.lineno)
        if not isinstance(node, ast.Name):
            self._inner(node)

    def _inner(self, node: ast.expr) -> None:
        while True:
            match node:
                case ast.Attribute(value=value):
                    node = value
                case ast.Subscript(value=value, slice=index):
                    self.visit(index)
                    node = value
                case ast.Call():
                    self._call(node)
                    return
                case ast.Name():
                    return
                case _:
                    self.visit(node)
                    return

    def _call(self, node: ast.Call) -> None:
        func = chain(node.func)
        args = tuple([argument(arg) for arg in node.args])
        keywords = tuple([(keyword.arg or "", argument(keyword.value)) for keyword in node.keywords])
        if func:
            self.calls.append(Call(func, node.lineno, args, keywords))
            self._special(node, func)
        if isinstance(node.func, ast.Attribute):
            self._attribute(node.func.value)
        elif not isinstance(node.func, ast.Name):
            self._inner(node.func)
        self.visit_all(node.args)
        self.visit_all(keyword.value for keyword in node.keywords)

    def _special(self, node: ast.Call, func: str) -> None:
        """`setattr` and `__setattr__`, entries put into `__dict__`, `getattr` with a name."""
        written = self._set(node, func)
        if written is not None:
            base, key, value = written
            self.writes += [Write(base, name, node.lineno, "setattr", chain(value)) for name in self._names(key)]
        elif isinstance(node.func, ast.Attribute) and (holder := _holder(node.func.value)) is not None:
            if node.func.attr == "update":
                self.writes += [Write(chain(holder), keyword.arg, node.lineno, MAPPING) for keyword in node.keywords]
                for given in node.args:
                    self._entries(holder, given, node.lineno)
            elif node.func.attr == "setdefault" and node.args:
                self.writes += [Write(chain(holder), name, node.lineno, MAPPING) for name in self._names(node.args[0])]
        elif func == "getattr" and len(node.args) >= 2:
            base = chain(node.args[0])
            if base:
                for name in self._names(node.args[1]):
                    if name is not None:
                        self.loads.setdefault(f"{base}.{name}", []).append(node.lineno)

    @staticmethod
    def _set(node: ast.Call, func: str) -> tuple[str, ast.expr, ast.expr] | None:
        """The object, the name and the value of a call that sets an attribute."""
        match node.args:
            case [base, key, value] if func in SETTERS:
                return chain(base), key, value
            case [key, value] if func.endswith(f".{SETTER}"):
                return func.removesuffix(f".{SETTER}"), key, value
            case _:
                return None

    def _entries(self, holder: ast.expr, value: ast.expr, line: int) -> None:
        """What is put into the `__dict__` of an object: the keys of a display, else nobody knows what."""
        keys = value.keys if isinstance(value, ast.Dict) else [None]
        names = [name for key in keys for name in (self._names(key) if key is not None else [None])]
        self.writes += [Write(chain(holder), name, line, MAPPING) for name in names]

    def _names(self, node: ast.expr) -> list[str | None]:
        """The names that an expression may be: a constant, or a variable that runs over constants."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.Name) and node.id in self.constants:
            return list(self.constants[node.id])
        return [None]

    def _assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._target(target, node.value)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._target(node.target, node.value)
        if isinstance(node.target, ast.Name | ast.Attribute):
            name = chain(node.target)
            for found in types(node.annotation):
                self.assigns.setdefault(name, []).append(f":{found}")

    def _aug_assign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Attribute):
            self._attribute(ast.Attribute(node.target.value, node.target.attr, ast.Load(), lineno=node.lineno))
        counts = isinstance(node.value, ast.Constant) and node.value.value == 1
        if (holder := _holder(node.target)) is not None:
            self._entries(holder, node.value, node.lineno)
        else:
            self._target(node.target, None, "+= 1" if counts else "=")

    def _named(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._target(node.target, node.value)

    def _target(self, target: ast.expr, value: ast.expr | None, how: str = "=") -> None:
        match target:
            case ast.Name(id=name):
                found = chains(value)
                if not found:
                    self.rebound.add(name)
                if value is not None:
                    self.assigns.setdefault(name, []).extend([*found, *decoded(value), *copied(value)])
            case ast.Attribute(value=base, attr=attr) if attr == MAPPING and value is not None:
                self._entries(base, value, target.lineno)
            case ast.Attribute(value=base, attr=attr):
                how = "None?" if replaces_none(target, value) else how
                self.writes.append(Write(chain(base), attr, target.lineno, how, chain(value)))
                self._inner(base)
                if isinstance(base, ast.Name) and value is not None:
                    self.assigns.setdefault(f"{base.id}.{attr}", []).extend(chains(value))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(elements) else None
                for index, element in enumerate(elements):
                    self._target(element, values[index] if values else None)
            case ast.Starred(value=inner):
                self._target(inner, None)
            case ast.Subscript(value=base, slice=index):
                if (holder := _holder(base)) is not None:
                    self.writes += [Write(chain(holder), name, target.lineno, MAPPING) for name in self._names(index)]
                self._inner(target)

    def _for(self, node: Any) -> None:
        """A loop, or the `for` of a comprehension: its variable is an element of what it runs over."""
        self.visit(node.iter)
        match node.target, node.iter:
            case ast.Name(id=name), ast.Tuple(elts=elements) | ast.List(elts=elements):
                texts = [element.value for element in elements if isinstance(element, ast.Constant)]
                if texts and len(texts) == len(elements) and all(isinstance(text, str) for text in texts):
                    self.constants[name] = [str(text) for text in texts]
                for element in elements:
                    self.assigns.setdefault(name, []).extend(chains(element))
            case ast.Name(id=name), _:
                found = chain(node.iter)
                if found:
                    found = found.removesuffix(".values()") if found.endswith(".values()") else found
                    self.assigns.setdefault(name, []).append(found + ITEM)
            case _:
                self._target(node.target, None)
        if isinstance(node, ast.comprehension):
            self.visit_all(node.ifs)
        else:
            self.visit_all(node.body)
            self.visit_all(node.orelse)

    def _comprehension(self, node: Any) -> None:
        self.visit_all(node.generators)
        if isinstance(node, ast.DictComp):
            self.visit(node.key)
            self.visit(node.value)
        else:
            self.visit(node.elt)

    def _with(self, node: Any) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars, item.context_expr)
        self.visit_all(node.body)

    def _skip(self, node: ast.AST) -> None:
        """Names alone tell nothing here."""

    def _nested_function(self, node: FunctionNode) -> None:
        self.visit_all(node.decorator_list)
        self.visit_all(default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
        if node.name in self._only_handed:
            self.handed.append(node)
        else:
            self.visit_all(node.body)

    @cached_property
    def _only_handed(self) -> set[str]:
        """Names that stand nowhere but among the positional arguments of a call of a method."""
        used: list[str] = []
        handed: list[str] = []
        for part in ast.walk(self.node):
            match part:
                case ast.Name(id=name):
                    used.append(name)
                case ast.Call(func=ast.Attribute(), args=args):
                    handed += [arg.id for arg in args if isinstance(arg, ast.Name)]
        return {name for name in handed if handed.count(name) == used.count(name)}

    def _nested_class(self, node: ast.ClassDef) -> None:
        """To define a class is not to run its methods."""
        self.classes.append(node)


def _holder(node: ast.expr) -> ast.expr | None:
    """The object whose attributes an expression is the mapping of: `x.__dict__`, `vars(x)`."""
    match node:
        case ast.Attribute(value=holder, attr=attr) if attr == MAPPING:
            return holder
        case ast.Call(func=ast.Name(id="vars"), args=[holder]):
            return holder
        case _:
            return None


_VISITORS: Final[dict[type[ast.AST], Callable[[Body, Any], None]]] = {
    ast.Constant: Body._constant,  # noqa: SLF001 - a table of its own methods
    ast.Attribute: Body._attribute,  # noqa: SLF001
    ast.Subscript: Body._attribute,  # noqa: SLF001
    ast.Call: Body._call,  # noqa: SLF001
    ast.Assign: Body._assign,  # noqa: SLF001
    ast.AnnAssign: Body._ann_assign,  # noqa: SLF001
    ast.AugAssign: Body._aug_assign,  # noqa: SLF001
    ast.NamedExpr: Body._named,  # noqa: SLF001
    ast.For: Body._for,  # noqa: SLF001
    ast.AsyncFor: Body._for,  # noqa: SLF001
    ast.comprehension: Body._for,  # noqa: SLF001
    ast.ListComp: Body._comprehension,  # noqa: SLF001
    ast.SetComp: Body._comprehension,  # noqa: SLF001
    ast.GeneratorExp: Body._comprehension,  # noqa: SLF001
    ast.DictComp: Body._comprehension,  # noqa: SLF001
    ast.With: Body._with,  # noqa: SLF001
    ast.AsyncWith: Body._with,  # noqa: SLF001
    ast.Name: Body._skip,  # noqa: SLF001
    ast.Import: Body._skip,  # noqa: SLF001
    ast.ImportFrom: Body._skip,  # noqa: SLF001
    ast.FunctionDef: Body._nested_function,  # noqa: SLF001
    ast.AsyncFunctionDef: Body._nested_function,  # noqa: SLF001
    ast.ClassDef: Body._nested_class,  # noqa: SLF001
}
