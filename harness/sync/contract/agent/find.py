"""Find in an engine's source where a ready response is applied: by what the code does, whatever it is called.

The one looked for is a method that decodes one of its arguments as a declared class and writes what it read into
objects that `self` holds. A method that writes the most fields of the decoded message that way is the one: other
messages of an engine are decoded, too, but end in local variables or in the engine's own queues.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LEAST_FIELDS = 2
"""A method that takes over fewer fields than this settles no configuration."""


@dataclass
class Applied:
    """A method that takes a message over.

    Attributes:
        file: Where, relative to the package's parent.
        module: Its dotted name.
        class_name: The class that has it.
        method: Its name.
        line: Where it begins.
        message: The class that is decoded, as written there.
        lines: Field of the message -> the last line that reads it.
        keys: Fields by which what is kept is told apart.
        written: Fields that end in an object which `self` holds.
    """

    file: str
    module: str
    class_name: str
    method: str
    line: int
    message: str
    lines: dict[str, int] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)


def find(package: Path) -> list[Applied]:
    """Everything in a package that looks like it, the most likely first."""
    found = []
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"decode" not in source or b"msgpack" not in source:
            continue
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        parts = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        file = path.relative_to(package.parent).as_posix()
        found += [one for one in _in_module(tree, file, module) if len(one.written) >= LEAST_FIELDS]
    return sorted(found, key=lambda one: -len(one.written))


def _in_module(tree: ast.Module, file: str, module: str) -> Iterator[Applied]:
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        decoders = _decoders(owner)
        for method in owner.body:
            if isinstance(method, ast.FunctionDef) and len(method.args.args) == 2:  # self, payload
                found = _decoded(method, decoders)
                if found is not None:
                    name, message = found
                    applied = Applied(file, module, owner.name, method.name, method.lineno, message)
                    _follow(method, name, applied)
                    yield applied


def _decoders(owner: ast.ClassDef) -> dict[str, str]:
    """Attribute of `self` that holds a decoder -> the class it decodes."""
    found = {}
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            message = _decoder_of(node.value)
            for target in node.targets:
                if message is not None and isinstance(target, ast.Attribute) and _is_name(target.value, "self"):
                    found[target.attr] = message
    return found


def _decoded(method: ast.FunctionDef, decoders: dict[str, str]) -> "tuple[str, str] | None":
    """The variable that holds the decoded argument, and the class it is decoded as."""
    payload = method.args.args[1].arg
    for node in ast.walk(method):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        for call in ast.walk(node.value):
            if (
                isinstance(target, ast.Name)
                and isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "decode"
                and call.args
                and _is_name(call.args[0], payload)
            ):
                message = _message(call, decoders)
                if message is not None:
                    return target.id, message
    return None


def _message(call: ast.Call, decoders: dict[str, str]) -> "str | None":
    assert isinstance(call.func, ast.Attribute)
    for keyword in call.keywords:
        if keyword.arg == "type" and isinstance(keyword.value, (ast.Name, ast.Attribute)):
            return ast.unparse(keyword.value)
    if isinstance(call.func.value, ast.Call):
        return _decoder_of(call.func.value)
    if isinstance(call.func.value, ast.Attribute) and _is_name(call.func.value.value, "self"):
        return decoders.get(call.func.value.attr)
    return None


def _decoder_of(call: ast.Call) -> "str | None":
    """The class in `…Decoder(Class)` or `…Decoder(type=Class)`."""
    if not ast.unparse(call.func).endswith("Decoder"):
        return None
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "type")]
    named = [ast.unparse(one) for one in given if isinstance(one, (ast.Name, ast.Attribute))]
    return named[0] if named else None


def _follow(method: ast.FunctionDef, name: str, applied: Applied) -> None:
    """What of the message is read where, and what of it reaches objects that `self` holds."""
    held, carries = _held_names(method), _carrying_names(method, name)
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and _is_name(node.value, name):
            applied.lines[node.attr] = max(node.lineno, applied.lines.get(node.attr, 0))
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and _is_held(target.value, held):
                    applied.written |= _reads(node.value, name, carries)
                if isinstance(target, ast.Subscript) and _is_held(target.value, held):
                    applied.written |= _reads(node.value, name, carries)
                    applied.keys += sorted(_reads(target.slice, name, {}))


def _held_names(method: ast.FunctionDef) -> set[str]:
    """Local names of objects that `self` holds."""
    held = {"self"}
    for node in _assignments(method):
        if isinstance(node.targets[0], ast.Name) and _is_held(node.value, held) and not _is_name(node.value, "self"):
            held.add(node.targets[0].id)
    return held


def _carrying_names(method: ast.FunctionDef, name: str) -> dict[str, set[str]]:
    """Local name -> the fields of the message whose values went into it."""
    carries: dict[str, set[str]] = {}
    for node in _assignments(method):
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id != name:
            carries[target.id] = carries.get(target.id, set()) | _reads(node.value, name, carries)
    for found in ast.walk(method):
        if isinstance(found, ast.AugAssign) and isinstance(found.target, ast.Name):
            carries[found.target.id] = carries.get(found.target.id, set()) | _reads(found.value, name, carries)
    return carries


def _assignments(method: ast.FunctionDef) -> list[ast.Assign]:
    found = [node for node in ast.walk(method) if isinstance(node, ast.Assign) and len(node.targets) == 1]
    return sorted(found, key=lambda node: node.lineno)


def _reads(node: ast.AST, name: str, carries: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and _is_name(part.value, name):
            found.add(part.attr)
        elif isinstance(part, ast.Name):
            found |= carries.get(part.id, set())
    return found


def _is_held(node: ast.AST, held: set[str]) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in held


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
