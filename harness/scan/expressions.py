"""Evaluate expressions over known and unknown values."""

import ast
import builtins
import operator
from collections.abc import Callable, Mapping
from typing import Any

from staticfire.harness.scan import forms, platforms, pure
from staticfire.harness.scan.base import ScanConfig, Unknown
from staticfire.harness.scan.calls import Calls
from staticfire.harness.scan.state import UNBOUND, Construct, Exhausted, Frame
from staticfire.harness.scan.values import (
    Capability,
    Class,
    External,
    Function,
    Instance,
    Items,
    Joined,
    Keys,
    Made,
    Member,
    Method,
    ModuleValue,
    Rest,
    Text,
    deeply_known,
    is_known,
)

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_BITS = 4096
_HOPELESS = 16
"""Unknown elements in a row after which the rest of a comprehension is not looked at."""
BUILTINS = frozenset(dir(builtins))


class _Hopeless(Exception):  # noqa: N818
    """A comprehension of which nothing will be known."""


def unknown(reason: str, detail: str = "") -> Unknown:
    """An unknown value without candidates."""
    return Unknown(reason, detail)


def truth(value: Any) -> bool | None:
    """Whether a value is true; None where that is not known."""
    if isinstance(value, Unknown):
        outcomes = {truth(item) for item in value.candidates}
        return outcomes.pop() if len(outcomes) == 1 else None
    if isinstance(value, Keys) and value.rest is not None and not value:
        return None
    if isinstance(value, list) and value and all(isinstance(item, Rest) for item in value):
        return None
    if isinstance(value, Joined):
        return True if any(isinstance(piece, str) and piece for piece in value.pieces) else None
    if is_known(value):
        return bool(value)
    if isinstance(value, Made | Function | Class | Member | ModuleValue):
        return True
    return None


class Expressions(Calls):
    """Evaluation of expressions; calls are in the base class, statements in the derived one."""

    config: ScanConfig

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression.

        Raises:
            Exhausted: The run has used up its steps.
        """
        run = self.run
        run.steps -= 1
        if run.steps < 0:
            raise Exhausted
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return unknown("expression", type(node).__name__)
        try:
            return handler(self, node, frame)
        except pure.TooLarge:
            return unknown("limit", frame.module.excerpt(node))

    def choose(self, ways: int, describe: Callable[[int], str]) -> int:
        """Take one of several ways that reading cannot decide between; the others are followed in other runs."""
        run = self.run
        index = len(run.taken)
        way = run.prefix[index] if index < len(run.prefix) else 0
        if index < 40:
            run.taken.append((ways, way))
        run.assumed.append(describe(way))
        return way

    def pick(self, value: Any, key: tuple[str, str]) -> Any:
        """One candidate of an unknown value that has candidates; the same one all through a run."""
        if not isinstance(value, Unknown) or not value.candidates or self.run.joined:
            return value
        if key not in self.run.picks:
            way = self.choose(len(value.candidates), lambda way: f"{key[1]} is {value.candidates[way]!r:.60}")
            self.run.picks[key] = value.candidates[way]
        return self.run.picks[key]

    def condition(self, node: ast.expr, frame: Frame) -> bool | None:
        """Whether a condition holds; None where reading cannot tell."""
        return truth(self.evaluate(node, frame))

    # Names and attributes

    def _name(self, node: ast.Name, frame: Frame) -> Any:
        return self.lookup(node.id, frame)

    def lookup(self, name: str, frame: Frame) -> Any:
        """What a name stands for in a frame."""
        scope: Frame | None = frame
        while scope is not None:
            if name in scope.names:
                value = scope.names[name]
                if isinstance(value, Unknown) and value.candidates:
                    return self.pick(value, (scope.qualified, name))
                return value
            scope = scope.parent
        value = self.module_name(frame.module, name)
        if value is UNBOUND:
            return External(f"builtins.{name}") if name in BUILTINS else unknown("name", name)
        return self._own(value, (frame.module.shown, name))

    def _own(self, value: Any, key: tuple[str, str]) -> Any:
        """A module's value as this run may change it."""
        value = self.pick(value, key)
        if self.run.joined or not isinstance(value, list | dict | Instance):
            return value
        kept = (key[0], f"={key[1]}")
        if kept not in self.run.picks:
            if key not in self._small:
                self._small[key] = pure.weight(value, 3_000) < 3_000
            self.run.picks[kept] = pure.duplicate(value) if self._small[key] else value
        return self.run.picks[kept]

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        base = self.evaluate(node.value, frame)
        return self.attribute(base, node.attr, node, frame)

    def attribute(self, base: Any, name: str, node: ast.expr, frame: Frame) -> Any:  # noqa: C901, PLR0911, PLR0912
        """An attribute of a value."""
        match base:
            case External():
                dotted = f"{base.name}.{name}"
                found = platforms.attribute(dotted, self.config)
                if found is not NotImplemented:
                    return found
                if base.last == "envs" or dotted.startswith("os.environ."):
                    return External(dotted) if base.last == "environ" else unknown("environment", dotted)
                return External(dotted)
            case ModuleValue():
                value = self.module_name(base.module, name)
                return unknown("attribute", name) if value is UNBOUND else value
            case Instance():
                return self.instance_attribute(base, name)
            case Class():
                return self.class_attribute(base, name)
            case Member():
                if name in {"value", "name"}:
                    return base.value if name == "value" else base.name
                member = self.class_attribute(base.cls, name)
                return self.bind(member, base) if isinstance(member, Function) else member
            case Made():
                if name in base.keywords:
                    return base.keywords[name]
                return unknown("object", f"{base.name}.{name}")
            case Unknown():
                if base.candidates:
                    return unknown(base.reason, f"{base.detail}.{name}")
                return unknown(base.reason, base.detail or frame.module.excerpt(node))
            case Capability() if name in {"major", "minor"}:
                return getattr(base, name)
            case Function():
                return base.name if name == "__name__" else unknown("attribute", name)
            case _ if is_known(base):
                if isinstance(base, tuple) and hasattr(base, "_fields") and name in base._fields:
                    return getattr(base, name)
                return Method(base, name)
            case _:
                return unknown("attribute", frame.module.excerpt(node))

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        base = self.evaluate(node.value, frame)
        if isinstance(base, External):
            if base.name == "os.environ":
                return self.environment_value(self.evaluate(node.slice, frame), unknown("environment", "os.environ"))
            return base  # a generic alias such as `list[str]`
        if isinstance(base, Class):
            key = self.evaluate(node.slice, frame)
            member = self.class_attribute(base, key) if isinstance(key, str) else None
            return member if isinstance(member, Member) else base
        if isinstance(node.slice, ast.Slice):
            return self._slice(base, node.slice, frame)
        key = self.evaluate(node.slice, frame)
        if isinstance(base, Made):
            return unknown("object", base.name)
        if isinstance(base, Unknown):
            return unknown(base.reason, base.detail)
        return self._element(base, key, node, frame)

    def _element(self, base: Any, key: Any, node: ast.Subscript, frame: Frame) -> Any:
        if isinstance(key, Unknown) or not pure.hashable(key):
            candidates: tuple[Any, ...] = ()
            if isinstance(base, dict) and 0 < len(base) <= 8 and not (isinstance(base, Keys) and base.rest):
                candidates = tuple(base.values())
            return Unknown(getattr(key, "reason", "subscript"), frame.module.excerpt(node), candidates)
        if isinstance(base, list | tuple) and isinstance(key, int):
            reach = base[:key] if key >= 0 else base[key:]
            if any(isinstance(item, Rest) for item in reach):
                return unknown("value", frame.module.excerpt(node))
        try:
            found = base[key]
        except (KeyError, IndexError, TypeError):
            return unknown("subscript", frame.module.excerpt(node))
        return found.why if isinstance(found, Rest) else found

    def _slice(self, base: Any, part: ast.Slice, frame: Frame) -> Any:
        bounds = [
            self.evaluate(item, frame) if item is not None else None for item in (part.lower, part.upper, part.step)
        ]
        if not all(bound is None or isinstance(bound, int) for bound in bounds):
            return unknown("subscript", "slice")
        if isinstance(base, list | tuple) and any(isinstance(item, Rest) for item in base):
            return unknown("value", "slice")
        if isinstance(base, list | tuple | str | range | bytes):
            try:
                cut = base[slice(*bounds)]
            except (ValueError, TypeError):
                return unknown("subscript", "slice")
            return Items(cut, None) if isinstance(base, list) else cut
        return base if isinstance(base, Unknown) else unknown("subscript", "slice")

    # Literals

    def _constant(self, node: ast.Constant, _frame: Frame) -> Any:
        return unknown("value", "...") if node.value is Ellipsis else node.value

    def _list(self, node: ast.List, frame: Frame) -> Any:
        items = Items(self._elements(node.elts, frame))
        if items and forms.command_words(items):
            self.command(items, node, frame)
        return items

    def _elements(self, nodes: list[ast.expr], frame: Frame) -> list[Any]:
        made: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                pure.extend(made, self.evaluate(node.value, frame))
            elif isinstance(node, ast.Constant):
                value = node.value
                made.append(Text(value, frame.module.place(node)) if type(value) is str and len(nodes) < 500 else value)
            else:
                made.append(self.evaluate(node, frame))
            if len(made) > self.config.limits.elements:
                raise pure.TooLarge
        return made

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Any:
        return tuple(self._elements(node.elts, frame))

    def _set(self, node: ast.Set, frame: Frame) -> Any:
        elements = self._elements(node.elts, frame)
        if not all(pure.hashable(item) for item in elements):
            return unknown("value", "set")
        return set(elements)

    def _dict(self, node: ast.Dict, frame: Frame) -> Any:
        made = Keys()
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(value_node, frame)
            if key_node is None:
                pure.merge(made, value)
                continue
            key = self.evaluate(key_node, frame)
            if isinstance(key, Unknown) or not pure.hashable(key):
                made.rest = key if isinstance(key, Unknown) else unknown("value", "key")
                continue
            made[key] = value
            made.where[key] = frame.module.place(key_node)
        return made

    def _joined(self, node: ast.JoinedStr, frame: Frame) -> Any:
        pieces: list[Any] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                pieces.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.evaluate(part.value, frame)
            plain = isinstance(value, str | int | float | bool | None) and not (
                isinstance(value, int) and value.bit_length() > _BITS
            )
            if plain and part.format_spec is None and part.conversion in {-1, 115}:
                pieces.append(str(value))
            elif isinstance(value, Joined):
                pieces.extend(value.pieces)
            elif plain and isinstance(part.format_spec, ast.JoinedStr):
                pieces.append(self._formatted(value, part.format_spec, frame))
            elif deeply_known(value) and part.format_spec is None and len(repr(value)) < 10_000:
                pieces.append(repr(value) if part.conversion == 114 else str(value))
            else:
                pieces.append(
                    value if isinstance(value, Unknown) else unknown("value", frame.module.excerpt(part.value))
                )
        return joined(pieces, self.config.limits.elements * 10)

    def _formatted(self, value: Any, spec: ast.JoinedStr, frame: Frame) -> Any:
        text = self._joined(spec, frame)
        if not isinstance(text, str) or len(text) > 8 or any(len(run) > 3 for run in _digits(text)):
            return unknown("value", "format")
        try:
            return format(value, text)
        except (ValueError, TypeError):
            return unknown("error", "format")

    # Operators

    def _boolop(self, node: ast.BoolOp, frame: Frame) -> Any:
        wanted = isinstance(node.op, ast.Or)
        open_value: Any = None
        value: Any = None
        for operand in node.values:
            value = self.evaluate(operand, frame)
            decided = truth(value)
            if decided is wanted:
                if open_value is None:
                    return value
                return (
                    unknown("condition", open_value.detail)
                    if not is_known(value) or not wanted
                    else self._either(open_value, value)
                )
            if decided is None:
                open_value = open_value or (value if isinstance(value, Unknown) else unknown("condition", ""))
        return open_value if open_value is not None else value

    def _either(self, first: Unknown, second: Any) -> Unknown:
        candidates = (*first.candidates, second) if first.candidates else ()
        # `unknown or True` is true whatever the first is.
        return Unknown("condition", first.detail, (True,) if second is True and not candidates else candidates)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            decided = truth(value)
            return unknown("condition", frame.module.excerpt(node)) if decided is None else not decided
        if isinstance(value, int | float):
            try:
                return _UNARY[type(node.op)](value)
            except TypeError:
                return unknown("error", "operator")
        return value if isinstance(value, Unknown) else unknown("value", frame.module.excerpt(node))

    def _binop(self, node: ast.BinOp, frame: Frame) -> Any:
        left = self.evaluate(node.left, frame)
        right = self.evaluate(node.right, frame)
        return self.combine(type(node.op), left, right, node, frame)

    def combine(self, kind: type[ast.operator], left: Any, right: Any, node: ast.AST, frame: Frame) -> Any:  # noqa: PLR0911
        """`left op right`."""
        limit = self.config.limits.elements
        if kind is ast.Add and isinstance(left, list | tuple):
            made = list(left)
            pure.extend(made, right)
            if len(made) > limit:
                raise pure.TooLarge
            if isinstance(left, tuple):
                return tuple(made)
            return self.derived(left, Items(made))
        if kind is ast.Add and isinstance(right, list) and isinstance(left, Unknown):
            return Items([Rest(left), *right])
        if kind is ast.Add and isinstance(left, str | Joined) and isinstance(right, str | Joined | Unknown):
            return joined([left, right], limit * 10)
        if kind is ast.Add and isinstance(left, Unknown) and isinstance(right, str | Joined):
            return joined([left, right], limit * 10)
        if kind is ast.BitOr and isinstance(left, dict):
            merged = Keys(left)
            pure.merge(merged, right)
            return merged
        if kind is ast.Div and isinstance(left, External | Unknown):
            return unknown("path", frame.module.excerpt(node))
        for side in (left, right):
            if isinstance(side, Unknown):
                return unknown(side.reason, side.detail)
        if not (deeply_known(left) and deeply_known(right)):
            return unknown("value", frame.module.excerpt(node))
        return self._arithmetic(kind, left, right, frame.module.excerpt(node))

    def _arithmetic(self, kind: type[ast.operator], left: Any, right: Any, text: str) -> Any:
        function = _BINARY.get(kind)
        limit = self.config.limits.elements
        if kind is ast.Pow and isinstance(left, int | float) and isinstance(right, int) and abs(right) <= 64:
            function = operator.pow
        if kind is ast.LShift and isinstance(right, int) and 0 <= right <= 64:
            function = operator.lshift
        if kind is ast.Mult and any(isinstance(side, str | list | tuple) for side in (left, right)):
            size, count = (left, right) if isinstance(right, int) else (right, left)
            if not isinstance(count, int) or isinstance(size, int | float) or len(size) * max(count, 0) > limit * 10:
                raise pure.TooLarge
        if kind is ast.Mod and isinstance(left, str) and any(len(run) > 3 for run in _digits(left)):
            return unknown("value", text)
        if function is None or any(isinstance(side, int) and side.bit_length() > _BITS for side in (left, right)):
            return unknown("value", text)
        try:
            result = function(left, right)
        except Exception:  # noqa: BLE001
            return unknown("error", text)
        return Items(result) if type(result) is list else result

    def _compare(self, node: ast.Compare, frame: Frame) -> Any:
        left = self.evaluate(node.left, frame)
        outcome: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node, frame)
            result = self._comparison(op, left, right)
            if result is False:
                return False
            if result is None:
                outcome = None
            left = right
        return unknown("condition", frame.module.excerpt(node)) if outcome is None else outcome

    def _comparison(self, op: ast.cmpop, left: Any, right: Any) -> bool | None:
        if isinstance(op, ast.Is | ast.IsNot):
            same = self._identical(left, right)
            return None if same is None else same is isinstance(op, ast.Is)
        if isinstance(op, ast.In | ast.NotIn):
            inside = self._contains(right, left)
            return None if inside is None else inside is isinstance(op, ast.In)
        if isinstance(left, External | Member | Class | Function) and type(left) is type(right):
            equal = left == right
            # Two names of foreign things may be two names of one thing, so only equality is certain.
            if isinstance(op, ast.Eq | ast.NotEq) and (equal or isinstance(left, Member)):
                return equal is isinstance(op, ast.Eq)
            return None
        if not (deeply_known(left) and deeply_known(right)):
            return None
        try:
            return bool(_COMPARE[type(op)](left, right))
        except TypeError:
            return None

    @staticmethod
    def _identical(left: Any, right: Any) -> bool | None:
        if left is right:
            return True
        if left is None or right is None:
            other = right if left is None else left
            if isinstance(other, Unknown):
                return None
            return None if isinstance(other, External) else False
        if isinstance(left, bool) and isinstance(right, bool):
            return left is right
        return None

    @staticmethod
    def _contains(container: Any, item: Any) -> bool | None:
        if isinstance(container, Joined) and isinstance(item, str):
            return True if any(isinstance(piece, str) and item in piece for piece in container.pieces) else None
        if not deeply_known(item) or not is_known(container):
            return None
        try:
            if item in container:
                return True
        except TypeError:
            return None
        closed = deeply_known(list(container) if isinstance(container, dict) else container)
        return False if closed and not (isinstance(container, Keys) and container.rest) else None

    def _ifexp(self, node: ast.IfExp, frame: Frame) -> Any:
        decided = self.condition(node.test, frame)
        if decided is not None:
            return self.evaluate(node.body if decided else node.orelse, frame)
        text = frame.module.excerpt(node.test)
        if self.run.joined:
            candidates = (self.evaluate(node.body, frame), self.evaluate(node.orelse, frame))
            return Unknown("condition", text, candidates)
        way = self.choose(2, lambda way: text if way == 0 else f"not ({text})")
        return self.evaluate(node.body if way == 0 else node.orelse, frame)

    # Comprehensions and the rest

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame) -> Any:
        made = Items()
        inner = Frame(frame.module, {}, frame, frame.function, frame.qualified, given=frame.given)

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
            return set(made) if all(pure.hashable(item) for item in made) else unknown("value", "set")
        return made

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Any:
        made = Keys()
        inner = Frame(frame.module, {}, frame, frame.function, frame.qualified, given=frame.given)

        def add() -> None:
            key = self.evaluate(node.key, inner)
            value = self.evaluate(node.value, inner)
            if isinstance(key, Unknown) or not pure.hashable(key):
                made.rest = key if isinstance(key, Unknown) else unknown("value", "key")
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
        elements = pure.sequence(source)
        if elements is None:
            return source if isinstance(source, Unknown) else unknown("loop", inner.module.excerpt(clause.iter))
        why: Unknown | None = None
        if len(elements) > self.config.limits.iterations:
            why, elements = unknown("limit", "loop"), elements[: self.config.limits.iterations]
        for element in elements:
            self.assign(clause.target, element, inner)
            verdicts = [self.condition(test, inner) for test in clause.ifs]
            if False in verdicts:
                continue
            if None in verdicts:
                why = unknown("condition", inner.module.excerpt(clause.ifs[0]))
                continue
            why = self.generate(generators, index + 1, inner, emit) or why
        return why

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Any:
        return Function(node, frame.module, closure=frame)

    def _await(self, node: ast.Await, frame: Frame) -> Any:
        return self.evaluate(node.value, frame)

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        self.assign(node.target, value, frame)
        return value

    def _starred(self, node: ast.Starred, frame: Frame) -> Any:
        return self.evaluate(node.value, frame)

    def _yield(self, node: ast.Yield, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame) if node.value is not None else None
        if frame.yields is not None:
            frame.yields.append(value)
        return unknown("yield", "")

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        if frame.yields is not None:
            pure.extend(frame.yields, value)
        return unknown("yield", "")

    def derived(self, source: list[Any], made: Items) -> Items:
        """Let a list that continues a command be that command."""
        construct = getattr(source, "command", None)
        if isinstance(construct, Construct):
            made.command = construct
            construct.command = made
        return made


def joined(pieces: list[Any], limit: int) -> Any:
    """A string out of pieces, some of which may not be known."""
    flat: list[Any] = []
    for piece in pieces:
        for part in piece.pieces if isinstance(piece, Joined) else (piece,):
            if isinstance(part, str) and flat and isinstance(flat[-1], str):
                flat[-1] += part
            else:
                flat.append(str(part) if isinstance(part, str) else part)
    if sum(len(part) for part in flat if isinstance(part, str)) > limit:
        raise pure.TooLarge
    if all(isinstance(part, str) for part in flat):
        return flat[0] if flat else ""
    if len(flat) == 1:
        return flat[0]
    return Joined(tuple(flat))


def _digits(text: str) -> list[str]:
    return "".join(char if char.isdigit() else " " for char in text).split()


_HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any, Frame], Any]] = {
    ast.Name: Expressions._name,  # noqa: SLF001
    ast.Attribute: Expressions._attribute,  # noqa: SLF001
    ast.Subscript: Expressions._subscript,  # noqa: SLF001
    ast.Constant: Expressions._constant,  # noqa: SLF001
    ast.List: Expressions._list,  # noqa: SLF001
    ast.Tuple: Expressions._tuple,  # noqa: SLF001
    ast.Set: Expressions._set,  # noqa: SLF001
    ast.Dict: Expressions._dict,  # noqa: SLF001
    ast.JoinedStr: Expressions._joined,  # noqa: SLF001
    ast.BoolOp: Expressions._boolop,  # noqa: SLF001
    ast.UnaryOp: Expressions._unary,  # noqa: SLF001
    ast.BinOp: Expressions._binop,  # noqa: SLF001
    ast.Compare: Expressions._compare,  # noqa: SLF001
    ast.IfExp: Expressions._ifexp,  # noqa: SLF001
    ast.ListComp: Expressions._comprehension,  # noqa: SLF001
    ast.GeneratorExp: Expressions._comprehension,  # noqa: SLF001
    ast.SetComp: Expressions._comprehension,  # noqa: SLF001
    ast.DictComp: Expressions._dictcomp,  # noqa: SLF001
    ast.Lambda: Expressions._lambda,  # noqa: SLF001
    ast.Await: Expressions._await,  # noqa: SLF001
    ast.NamedExpr: Expressions._walrus,  # noqa: SLF001
    ast.Starred: Expressions._starred,  # noqa: SLF001
    ast.Yield: Expressions._yield,  # noqa: SLF001
    ast.YieldFrom: Expressions._yield_from,  # noqa: SLF001
    ast.Call: Expressions.call,
}
