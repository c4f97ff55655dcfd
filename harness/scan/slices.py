"""Which statements of a function matter to the sites in it: everything else is never evaluated."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from staticfire.harness.scan import forms
from staticfire.harness.scan.methods import CHANGING
from staticfire.harness.scan.modules import bound_names, pattern_names, target_names

Block = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module | ast.ClassDef
_ENVIRONMENT = frozenset({"environ", "putenv"})
_GUARDS = frozenset({"skip", "xfail", "importorskip"})
_QUIET = frozenset({"print", "len", "str", "isinstance", "repr", "sorted", "set"})
_CHANGING = CHANGING | {"__setitem__"}
MUTABLE = frozenset({"EngineArgs", "AsyncEngineArgs"})
"""Constructions that can still be changed before an engine is made of them."""
BUILDS = frozenset({"create_engine_config", "from_engine_args"})
"""Methods that make an engine's configuration of them."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(slots=True)
class _Entry:
    statement: ast.stmt
    parents: tuple[ast.stmt, ...]
    uses: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    seed: bool = False
    control: bool = False
    patch: bool = False
    made: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a block that matters.

    Attributes:
        statements: `id` of each statement that does.
        names: Names whose values do.
        values: Those of them that decide what a site is made with, not only whether it is reached.
    """

    statements: frozenset[int]
    names: frozenset[str]
    values: frozenset[str]


_TELLING = frozenset({ast.Call, ast.List, ast.Attribute})
_YIELDS = frozenset({ast.Yield, ast.YieldFrom})
_ATOMIC = frozenset(
    {"id", "attr", "ctx", "op", "ops", "arg", "kind", "level", "conversion", "is_async", "type_comment"}
)
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: (), ast.Global: (), ast.Nonlocal: ()}
"""Fields of each kind of node in which there are others; filled as kinds are met."""


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """A node and the nodes below it, operators and contexts left out, in no particular order.

    It is what a scan spends most of its time on, so it is written for speed: three times that of `ast.walk`.
    """
    pending = [root]
    pop, append, extend = pending.pop, pending.append, pending.extend
    while pending:
        node = pop()
        yield node
        kind = node.__class__
        names = _CHILDREN.get(kind)
        if names is None:
            names = _CHILDREN[kind] = tuple(name for name in kind._fields if name not in _ATOMIC)
        for name in names:
            value = getattr(node, name, None)
            if value.__class__ is list:
                extend([item for item in value if item is not None and item.__class__ is not str])
            elif value is not None and value.__class__ is not str and value.__class__ is not int:
                append(value)


def terminal(node: ast.expr) -> str:
    """The last name of a call's target: `f` of `a.b.f(...)`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return ""


def on_self(node: ast.expr) -> bool:
    """Whether a call's target is a method of an object (`self.f(...)`) rather than a name of a module."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def slice_block(block: Block, reach: frozenset[str], *, value: bool, keeps: bool = False) -> Slice:
    """What matters in a function's body (or a module's).

    Args:
        block: The function, class or module.
        reach: Names of functions and classes that lead to a site.
        value: Whether what it returns or yields matters too.
        keeps: Whether what it stores in `self` matters too.
    """
    if isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef):
        # A parameter of a fixture's name holds what the fixture gave, not the fixture.
        spec = block.args
        reach -= {arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    nested = {
        child.name for child in _nested_definitions(block) if any(_interesting(inner, reach) for inner in walk(child))
    }
    body = block.body
    if isinstance(block, ast.Module):
        # What it defines is read on its own, and is most of what there is to walk through.
        body = [statement for statement in body if not isinstance(statement, _DEFINITIONS)]
    entries = list(_entries(body, (), reach | nested, value=value))
    for entry in entries if keeps else ():
        entry.seed = entry.seed or _stores(entry.statement)
    if isinstance(block, ast.Module):
        entries = [entry for entry in entries if not isinstance(entry.statement, _DEFINITIONS)]
    return _close(entries, value=value)


def _stores(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in {"self", "cls"}
        for target in targets
    )


def _nested_definitions(block: Block) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    if isinstance(block, ast.Module):
        return
    pending: list[ast.stmt] = list(block.body)
    while pending:
        statement = pending.pop()
        if isinstance(statement, _DEFINITIONS):
            yield statement
        else:
            for inner in _blocks(statement):
                pending.extend(inner)


def _interesting(node: ast.AST, reach: Iterable[str]) -> bool:
    if isinstance(node, ast.Call):
        name = terminal(node.func)
        # What a base is made with may lead to a site.
        return name in forms.NAMES or name in reach or name in forms.ENVIRONMENT_CALLS or name == "__init__"
    if isinstance(node, ast.List):
        return forms.command_words([item.value if isinstance(item, ast.Constant) else "" for item in node.elts[:6]])
    if isinstance(node, ast.Attribute):
        return node.attr in _ENVIRONMENT
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in reach


def _entries(
    body: list[ast.stmt], parents: tuple[ast.stmt, ...], reach: frozenset[str] | set[str], *, value: bool
) -> Iterator[_Entry]:
    for statement in body:
        entry = _Entry(statement, parents)
        nodes = _header(statement)
        for node in nodes:
            for child in walk(node):
                kind = child.__class__
                if kind is ast.Name:
                    assert isinstance(child, ast.Name)
                    (entry.uses if child.ctx.__class__ is ast.Load else entry.binds).add(child.id)
                    if child.id in reach and child.id in entry.uses:
                        entry.seed = True
                elif kind in _TELLING:
                    entry.seed = entry.seed or _interesting(child, reach)
                elif value and kind in _YIELDS:
                    entry.seed = True
        _effects(entry, statement, value=value)
        yield entry
        for block in _blocks(statement):
            yield from _entries(block, (*parents, statement), reach, value=value)


def _effects(entry: _Entry, statement: ast.stmt, *, value: bool) -> None:
    if isinstance(statement, ast.Return):
        entry.control = True
        entry.seed = entry.seed or (value and statement.value is not None)
    elif isinstance(statement, ast.Break | ast.Continue) or (isinstance(statement, ast.Raise) and value):
        entry.control = True
        entry.uses = set()
    elif isinstance(statement, ast.Assert):
        entry.uses = set()
    elif isinstance(statement, ast.Match):
        entry.binds.update(name for case in statement.cases for name in pattern_names(case.pattern))
    elif isinstance(statement, _DEFINITIONS):
        entry.seed = False
        entry.binds = {statement.name}
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        entry.control = terminal(call.func) in _GUARDS
        if isinstance(call.func, ast.Attribute):
            entry.patch = call.func.attr == "setattr"
            if call.func.attr in _CHANGING:
                entry.binds.update(target_names(call.func))
        elif terminal(call.func) not in _QUIET:
            entry.binds.update(arg.id for arg in call.args if isinstance(arg, ast.Name))
    elif isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.Delete):
        entry.binds.update(bound_names(statement))
        if isinstance(statement, ast.Assign) and entry.seed and _mutable(statement.value):
            entry.made = entry.binds


def _mutable(node: ast.expr) -> bool:
    """Whether what is constructed can still be changed: engine arguments, or the words of a command."""
    if isinstance(node, ast.Call):
        return terminal(node.func) in MUTABLE
    return any(isinstance(child, ast.List) and _interesting(child, ()) for child in walk(node))


def _header(statement: ast.stmt) -> list[ast.AST]:
    """The expressions of a statement that are its own, without those of the blocks in it."""
    match statement:
        case ast.If() | ast.While():
            return [statement.test]
        case ast.For() | ast.AsyncFor():
            return [statement.target, statement.iter]
        case ast.With() | ast.AsyncWith():
            return list(statement.items)
        case ast.Try() | ast.TryStar():
            return []
        case ast.Match():
            return [
                statement.subject,
                *(part for case in statement.cases for part in (case.pattern, case.guard) if part is not None),
            ]
        case _:
            return [statement]


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, _DEFINITIONS):
        return
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body


def _close(entries: list[_Entry], *, value: bool) -> Slice:
    relevant: set[int] = set()
    names: set[str] = set()
    by_id = {id(entry.statement): entry for entry in entries}

    def take(entry: _Entry) -> None:
        if id(entry.statement) not in relevant:
            relevant.add(id(entry.statement))
            names.update(entry.uses)

    def close(pending: list[_Entry], last: int) -> None:
        while pending:
            for entry in pending:
                take(entry)
                for parent in entry.parents:
                    take(by_id[id(parent)])
            pending = [
                entry
                for entry in entries
                if entry.statement.lineno <= last
                and id(entry.statement) not in relevant
                and not names.isdisjoint(entry.binds)
            ]

    seeds = [entry for entry in entries if entry.seed]
    last = max((_reached_until(entry) for entry in seeds), default=0)
    close(seeds, last)
    made = {name for entry in seeds for name in entry.made}
    while made:
        later = [entry for entry in entries if id(entry.statement) not in relevant and _changes(entry, made)]
        last = max([last, *(entry.statement.end_lineno or 0 for entry in later)])
        close(later, last)
        further = {name for entry in later for name in entry.binds if isinstance(entry.statement, ast.Assign)}
        made = further - made
    decisive = frozenset(names)
    close(
        [
            entry
            for entry in entries
            if entry.control and entry.statement.lineno <= last and _ends(entry, relevant, value=value)
        ],
        last,
    )
    for entry in entries:
        if entry.patch and entry.statement.lineno <= last and all(id(parent) in relevant for parent in entry.parents):
            relevant.add(id(entry.statement))
    return Slice(frozenset(relevant), frozenset(names), decisive)


def _reached_until(entry: _Entry) -> int:
    """The last line that can run before a seed does: its own, or that of a loop around it."""
    loops = [parent for parent in entry.parents if isinstance(parent, ast.For | ast.AsyncFor | ast.While)]
    outermost = loops[0] if loops else entry.statement
    if not loops and isinstance(outermost, ast.With | ast.AsyncWith):
        return max(item.context_expr.end_lineno or 0 for item in outermost.items)
    return outermost.end_lineno or 0


def _changes(entry: _Entry, made: set[str]) -> bool:
    """Whether a statement changes what one of these names stands for, makes a longer one, or an engine of it."""
    statement = entry.statement
    if not made.isdisjoint(entry.uses) and any(
        isinstance(child, ast.Call) and terminal(child.func) in BUILDS
        for node in _header(statement)
        for child in walk(node)
    ):
        return True
    if isinstance(statement, ast.AugAssign | ast.Expr):
        return not made.isdisjoint(entry.binds)
    if not isinstance(statement, ast.Assign):
        return False
    attribute = any(
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in made
        for target in statement.targets
    )
    return attribute or (isinstance(statement.value, ast.BinOp) and not made.isdisjoint(entry.uses))


def _ends(entry: _Entry, relevant: set[int], *, value: bool) -> bool:
    """Whether a statement that leaves a block leaves one that matters."""
    if isinstance(entry.statement, ast.Break | ast.Continue):
        loops = [parent for parent in entry.parents if isinstance(parent, ast.For | ast.AsyncFor | ast.While)]
        return bool(loops) and id(loops[-1]) in relevant
    return value or not isinstance(entry.statement, ast.Raise)
