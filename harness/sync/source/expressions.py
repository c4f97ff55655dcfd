"""Expressions and annotations as chains and names of classes."""

import ast
import re
from typing import Final

from staticfire.harness.sync.source.facts import CALL, ITEM
from staticfire.harness.sync.source.shapes import COPIERS, DECODERS

DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+(?::\w+)?|[A-Za-z_]\w*:[A-Za-z_]\w*")
_WRAPPERS: Final = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired"})
_ELEMENTS: Final = frozenset(
    {
        "tuple",
        "Tuple",
        "list",
        "List",
        "Sequence",
        "Iterable",
        "Iterator",
        "Collection",
        "set",
        "frozenset",
        "deque",
        "AsyncIterator",
    }
)
_VALUES: Final = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"})
COPY: Final = "copy:"
"""Stands before the chain of an object that is copied, where the copy gets a name."""
INNER: Final = "def:"
"""Stands before the line of a function that another one defines and hands on."""
MODULE: Final = "module:"
"""Stands before the name of a module, written with `/`, that `import_module` is given."""
TYPE: Final = "type:"
"""Stands before the name of a class in an annotation `type[Name]`."""


def chain(node: ast.expr | None) -> str:
    """The chain of an expression; arguments of calls and subscripts are left out."""
    tail = ""
    while True:
        match node:
            case ast.Name(id=name):
                return name + tail
            case ast.Attribute(value=value, attr=attr):
                node, tail = value, f".{attr}{tail}"
            case ast.Call(func=ast.Name(id="super")):
                return f"super(){tail}"
            case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=str(attr)), *_]):
                node, tail = base, f".{attr}{tail}"
            case ast.Call(func=ast.Name(id="cast"), args=[_, value]):
                node = value
            case ast.Call(func=func, args=[ast.Constant(value=str(text))]) if chain(func).endswith("import_module"):
                return MODULE + text.replace(".", "/") + tail
            case ast.Call(func=func):
                node, tail = func, CALL + tail
            case ast.Subscript(value=value):
                node, tail = value, ITEM + tail
            case ast.Await(value=value) | ast.NamedExpr(target=value):
                node = value
            case _:
                return ""


def chains(node: ast.expr | None) -> list[str]:
    """The chains that an expression may be: those of a conditional expression, of `or`."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return [*chains(body), *chains(orelse)]
        case ast.BoolOp(values=values):
            return [found for value in values for found in chains(value)]
        case ast.NamedExpr(value=value):
            return chains(value)
        case _:
            found = chain(node)
            return [found] if found else []


def types(node: ast.expr | None) -> tuple[str, ...]:
    """The names of the classes in an annotation: `X`, `type:X` for a class itself, `X[]` for a collection of them."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute():
            found = chain(node)
            return (found,) if found else ()
        case ast.Constant(value=str(text)):
            try:
                return types(ast.parse(text.strip(), mode="eval").body)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return ()
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return types(left) + types(right)
        case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)):
            return _generic(value, parts)
        case ast.Subscript(value=value, slice=part):
            return _generic(value, [part])
        case _:
            return ()


def _generic(value: ast.expr, parts: list[ast.expr]) -> tuple[str, ...]:
    """The types in `value[parts]`."""
    name = chain(value).rpartition(".")[2]
    before, after = "", ""
    if name in {"type", "Type"}:
        before = TYPE
    elif name == "Annotated":
        parts = parts[:1]
    elif name in _ELEMENTS:
        after = ITEM
    elif name in _VALUES:
        parts, after = parts[1:], ITEM
    elif name not in _WRAPPERS:
        return types(value)
    return tuple([before + found + after for part in parts for found in types(part)])


def decoded(node: ast.expr) -> list[str]:
    """What a decoding call is told to make: `decode(data, type=Message)`, as an annotation."""
    if isinstance(node, ast.Call) and chain(node.func).rpartition(".")[2] in DECODERS:
        return [f":{found}" for keyword in node.keywords if keyword.arg == "type" and (found := chain(keyword.value))]
    return []


def copied(node: ast.expr) -> list[str]:
    """What a copying call is given."""
    if isinstance(node, ast.Call) and chain(node.func).rpartition(".")[2] in COPIERS and node.args:
        return [COPY + found for found in chains(node.args[0])]
    return []


def declared(node: ast.expr) -> tuple[str, ...]:
    """Dotted texts in what `Annotated` adds to a type."""
    found: list[str] = []
    for part in ast.walk(node):
        match part:
            case ast.Subscript(value=value, slice=ast.Tuple(elts=[_, *extras])) if chain(value).endswith("Annotated"):
                for extra in extras:
                    if isinstance(extra, ast.Call):
                        texts = [inner.value for inner in ast.walk(extra) if isinstance(inner, ast.Constant)]
                        found += [text for text in texts if isinstance(text, str) and DOTTED.fullmatch(text)]
    return tuple(found)


def allows_none(node: ast.expr) -> bool:
    """Whether an annotation allows None."""
    for part in ast.walk(node):
        match part:
            case ast.Constant(value=None) | ast.Name(id="Optional" | "Any") | ast.Attribute(attr="Optional" | "Any"):
                return True
            case ast.Constant(value=str(text)) if "None" in text or "Optional" in text or "Any" in text:
                return True
    return False


def replaces_none(target: ast.expr, value: ast.expr | None) -> bool:
    """Whether an assignment changes nothing but None: `x = x if x is not None else default`."""
    match value:
        case ast.IfExp(
            test=ast.Compare(left=tested, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]), body=kept
        ):
            pass
        case ast.IfExp(
            test=ast.Compare(left=tested, ops=[ast.Is()], comparators=[ast.Constant(value=None)]), orelse=kept
        ):
            pass
        case _:
            return False
    return chain(target) == chain(kept) == chain(tested)


def argument(node: ast.expr) -> str:
    """An argument of a call: its chain, or a text constant after a quotation mark."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return f"'{node.value}" if len(node.value) < 200 else ""
    return chain(node)
