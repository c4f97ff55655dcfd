"""From the syntax tree of one file to what is kept of it."""

import ast
from collections.abc import Iterable
from typing import Final

from staticfire.harness.sync.source.body import Body, FunctionNode
from staticfire.harness.sync.source.expressions import (
    INNER,
    TYPE,
    allows_none,
    argument,
    chain,
    chains,
    declared,
    types,
)
from staticfire.harness.sync.source.facts import Class, Field, Function, Module

_BLOCKS: Final = ("body", "handlers", "orelse", "finalbody", "cases")
"""Attributes of statements that hold statements, or what holds them."""


class _File:
    """Collects what is kept of one file."""

    def __init__(self, path: str, name: str, package: bool) -> None:
        self.path = path
        self.name = name
        self.package = package
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.stars: list[str] = []
        self.classes: list[Class] = []
        self.functions: list[Function] = []
        self.assigns: dict[str, list[str]] = {}
        self.types: dict[str, tuple[str, ...]] = {}
        self.texts: dict[str, str] = {}

    def body(self, statements: Iterable[ast.stmt], owner: str) -> None:
        """Statements of the module or of a class."""
        for statement in statements:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(statement, owner)
                case ast.ClassDef():
                    self._class(statement, owner)
                case ast.If() | ast.Try() | ast.With():
                    for part in ("body", "orelse", "finalbody"):
                        self.body(getattr(statement, part, []), owner)
                    for handler in getattr(statement, "handlers", []):
                        self.body(handler.body, owner)
                case ast.Assign(targets=targets, value=value) if not owner:
                    for target in targets:
                        if isinstance(target, ast.Name):
                            self._top(target.id, value)
                case ast.AnnAssign(target=ast.Name(id=name), value=assigned) if not owner:
                    self.types[name] = types(statement.annotation)
                    if assigned is not None:
                        self._top(name, assigned)

    def _top(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            self.texts[name] = value.value
        else:
            self.assigns.setdefault(name, []).extend(chains(value))
            if isinstance(value, ast.Call):  # Decoder(Class): what it decodes
                given = [*value.args, *(keyword.value for keyword in value.keywords)]
                self.assigns[name].extend(f"arg:{found}" for item in given if (found := chain(item)))

    def _function(self, node: FunctionNode, owner: str) -> None:
        body = Body(node)
        body.visit_all(node.body)
        arguments = node.args
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip([arg.arg for arg in positional[::-1]], arguments.defaults[::-1], strict=False))
        defaults |= {
            arg.arg: value
            for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if value is not None
        }
        params = tuple([(arg.arg, types(arg.annotation)) for arg in listed])
        for inner in body.handed:
            body.assigns[inner.name] = [f"{INNER}{inner.lineno}"]
        outer = Function(
            path=self.path,
            module=self.name,
            owner=owner,
            name=node.name,
            line=node.lineno,
            params=params,
            defaults={name: text for name, value in defaults.items() if (text := argument(value))},
            returns=types(node.returns),
            decorators=tuple([chain(decorator) for decorator in node.decorator_list]),
            calls=tuple(body.calls),
            writes=tuple(body.writes),
            loads=body.loads,
            assigns=body.assigns,
            rebound=frozenset(body.rebound),
            texts=tuple(dict.fromkeys(body.texts)),
        )
        self.functions.append(outer)
        for cls in body.classes:
            self._class(cls, f"{owner}.{node.name}" if owner else node.name)
        for inner in body.handed:
            self._inner(inner, owner, outer)

    def _inner(self, node: FunctionNode, owner: str, outer: Function) -> None:
        """A function that another one only hands on."""
        place = len(self.functions)
        self._function(node, "")
        function = self.functions[place]
        me = outer.params[:1] if owner and not outer.inner and "staticmethod" not in outer.decorators else ()
        said = f"{TYPE}{owner}" if "classmethod" in outer.decorators else owner
        around = [(me[0][0], (said,)), *outer.params[1:]] if me else outer.params
        own = {name for name, _ in function.params}
        function.params += tuple((name, kinds) for name, kinds in around if name not in own)
        function.assigns = {name: found for name, found in outer.assigns.items() if name not in own} | function.assigns
        function.inner = True

    def _class(self, node: ast.ClassDef, owner: str) -> None:
        name = f"{owner}.{node.name}" if owner else node.name
        fields, assigns, methods = [], {}, []
        for statement in node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=field), annotation=annotation):
                    declares = declared(annotation)
                    fields.append(Field(field, types(annotation), statement.lineno, declares, allows_none(annotation)))
                case ast.Assign(targets=[ast.Name(id=field)], value=value):
                    assigns[field] = chains(value)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    methods.append(statement.name)
        calls = [decorator for decorator in node.decorator_list if isinstance(decorator, ast.Call)]
        said = [*node.keywords, *(keyword for call in calls for keyword in call.keywords)]
        frozen = any(
            keyword.arg == "frozen" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in said
        )
        self.classes.append(
            Class(
                path=self.path,
                module=self.name,
                name=name,
                line=node.lineno,
                bases=tuple([chain(base) for base in node.bases]),
                decorators=tuple([chain(decorator) for decorator in node.decorator_list]),
                frozen=frozen,
                fields=tuple(fields),
                methods=tuple(methods),
                assigns=assigns,
            )
        )
        self.body(node.body, name)

    def read_imports(self, tree: ast.Module) -> None:
        """Every import of the file, wherever it stands."""
        parts = self.name.split(".")
        pending: list[ast.AST] = [tree]
        while pending:
            node = pending.pop()
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        top = alias.asname or alias.name.partition(".")[0]
                        self.imports[top] = (alias.name if alias.asname else top, None)
                case ast.ImportFrom(module=module, names=names, level=level):
                    origin = module or ""
                    if level:
                        base = parts if self.package else parts[:-1]
                        kept = base[: len(base) - (level - 1)]
                        origin = "." + ".".join([*kept, *([module] if module else [])])
                    for alias in names:
                        if alias.name == "*":
                            self.stars.append(origin)
                        else:
                            self.imports.setdefault(alias.asname or alias.name, (origin, alias.name))
                case _:
                    for block in _BLOCKS:
                        pending.extend(getattr(node, block, ()))


def extract(tree: ast.Module, path: str, name: str, package: bool) -> Module:
    """What is kept of one file.

    Args:
        tree: Its syntax tree.
        path: How locations name it.
        name: Dotted name of the module from the root of the tree.
        package: Whether it is an `__init__.py`.
    """
    file = _File(path, name, package)
    file.read_imports(tree)
    file.body(tree.body, "")
    return Module(
        path=path,
        name=name,
        package=package,
        imports=file.imports,
        stars=tuple(file.stars),
        classes=tuple(file.classes),
        functions=tuple(file.functions),
        assigns=file.assigns,
        types=file.types,
        texts=file.texts,
    )
