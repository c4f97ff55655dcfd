"""The fixed operators that mutate a Triton kernel: each finds its places in a jitted function and says what to put."""

import ast
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

Span = tuple[int, int]


class Edit(NamedTuple):
    """Another text for a span of characters."""

    operator: str
    span: Span
    text: str


class Scope:
    """A jitted function as the operators see it.

    Args:
        tree: Its definition.
        text: The file.
    """

    def __init__(self, tree: ast.FunctionDef, text: str) -> None:
        self.tree = tree
        self._text = text
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        arguments = [argument.arg for argument in tree.args.args if argument.annotation is None]
        self.constants = {argument.arg for argument in tree.args.args} - set(arguments)
        self.strides = [name for name in arguments if name in self._multiplied()]
        self.wide = {
            name.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and "WIDE" in ast.unparse(node.value)
            for name in node.targets
            if isinstance(name, ast.Name)
        }

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Characters of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def code(self, node: ast.AST) -> str:
        """Text of a node."""
        return ast.unparse(node)

    def edit(self, operator: str, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Put `text` in a node's place."""
        return Edit(operator, self.span(node), text)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of `tl.NAME`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
                yield node

    def products(self) -> Iterator[ast.BinOp]:
        """Every multiplication."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                yield node

    def _multiplied(self) -> set[str]:
        sides = [side for node in self.products() for side in (node.left, node.right)]
        return {side.id for side in sides if isinstance(side, ast.Name)}


def offset(scope: Scope) -> Iterator[Edit]:
    """Read or write one element further on."""
    for call in scope.calls("load", "store"):
        yield scope.edit("offset off by one", call.args[0], f"{scope.code(call.args[0])} + 1")


def mask(scope: Scope) -> Iterator[Edit]:
    """Drop a mask, or one of the conditions that it joins."""
    for call in scope.calls("load", "store"):
        for keyword in call.keywords:
            if keyword.arg != "mask":
                continue
            bare = ast.Call(call.func, call.args, [k for k in call.keywords if k.arg not in ("mask", "other")])
            yield scope.edit("mask dropped", call, scope.code(bare))
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and _is_condition(node):
            yield scope.edit("condition dropped", node, scope.code(node.left))
            yield scope.edit("condition dropped", node, scope.code(node.right))


def _is_condition(node: ast.BinOp) -> bool:
    return not any(isinstance(side, ast.Constant) for side in (node.left, node.right))


def stride(scope: Scope) -> Iterator[Edit]:
    """Step by the neighbouring argument."""
    for node in scope.products():
        for side in (node.left, node.right):
            if isinstance(side, ast.Name) and side.id in scope.strides and len(scope.strides) > 1:
                place = scope.strides.index(side.id)
                other = scope.strides[place + 1] if place + 1 < len(scope.strides) else scope.strides[place - 1]
                yield scope.edit("wrong stride", side, other)


def accumulate(scope: Scope) -> Iterator[Edit]:
    """Keep a sum in 16 bits."""
    half = ".to(tl.float16).to(WIDE)"
    if "WIDE" not in scope.constants:
        return
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in scope.wide:
            total = ast.unparse(ast.BinOp(ast.Name(node.target.id), node.op, node.value))
            yield scope.edit("narrow accumulator", node, f"{node.target.id} = ({total}){half}")
    for call in scope.calls("dot"):
        yield scope.edit("narrow accumulator", call, scope.code(call) + half)
    for call in scope.calls("sum"):
        if "int" not in scope.code(call.args[0]):
            summed = ast.Call(call.func, [_raw(f"({scope.code(call.args[0])}).to(tl.float16)"), *call.args[1:]], [])
            yield scope.edit("narrow accumulator", call, f"{scope.code(summed)}.to(WIDE)")


def _raw(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


_PAIRS: Final = (("source", "target"), ("target", "source"), ("gate_place", "up_place"), ("first", "second"))


def index(scope: Scope) -> Iterator[Edit]:
    """Take the number of a sequence, token or pair for what a list says of it; or the source for the target."""
    for call in scope.calls("to"):
        assert isinstance(call.func, ast.Attribute)
        load = call.func.value
        if "tl.int" in scope.code(call) and isinstance(load, ast.Call) and ast.unparse(load.func) == "tl.load":
            pointer = load.args[0]
            if isinstance(pointer, ast.BinOp) and isinstance(pointer.right, ast.Name):
                yield scope.edit("index not looked up", call, f"{pointer.right.id}.to(tl.int64)")
    read = [node for node in ast.walk(scope.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    known = {node.id for node in read}
    for one, other in _PAIRS:
        if {one, other} <= known:
            yield from (scope.edit("index swapped", node, other) for node in read if node.id == one)


def int32(scope: Scope) -> Iterator[Edit]:
    """Leave an index in 32 bits before a stride multiplies it."""
    for call in scope.calls("to"):
        assert isinstance(call.func, ast.Attribute)
        if len(call.args) == 1 and ast.unparse(call.args[0]) == "tl.int64":
            value = scope.code(call.func.value)
            value = f"({value})" if isinstance(call.func.value, ast.BinOp) else value
            yield scope.edit("64 bits dropped", call, f"{value}.to(tl.int32)")


def axis(scope: Scope) -> Iterator[Edit]:
    """Reduce a matrix along its other axis."""
    for call in scope.calls("sum", "max", "min"):
        if len(call.args) == 2 and isinstance(call.args[1], ast.Constant):
            value = call.args[1].value
            if value == 1 or "[:, None]" in scope.code(call.args[0]):
                yield scope.edit("wrong axis", call.args[1], str(1 - int(str(value))))


def state(scope: Scope) -> Iterator[Edit]:
    """Start from nothing instead of what was kept."""
    for call in scope.calls("load"):
        words = {node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)}
        if words & {"held", "old", "state", "has_initial_state"} and "state_indices" not in words:
            yield scope.edit("state dropped", call, f"({scope.code(call)} * 0)")


_NEAR: Final = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}


def comparison(scope: Scope) -> Iterator[Edit]:
    """Move a bound by one."""
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _NEAR:
            text = f"{scope.code(node.left)} {_NEAR[type(node.ops[0])]} {scope.code(node.comparators[0])}"
            yield scope.edit("bound off by one", node, text)


OPERATORS: Final[tuple[Callable[[Scope], Iterator[Edit]], ...]] = (
    offset, mask, stride, accumulate, index, int32, axis, state, comparison,
)  # fmt: skip
