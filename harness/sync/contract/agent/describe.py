"""A message class and its values as plain data, so that the other side can draw examples of it."""

import dataclasses
import enum
from typing import Any, Final

import msgspec.inspect as shapes

OTHER: Final = {"is": "other"}
DEEPEST: Final = 3
_PLAIN: Final = {
    "BoolType": "bool", "FloatType": "float", "IntType": "int", "NoneType": "none", "StrType": "str",
}  # fmt: skip


def fields(kind: Any) -> list[dict[str, Any]]:
    """The fields of a message class, in order: `name`, `type`, `required`, and `default` where that is plain."""
    return [_field(field, 0) for field in shapes.type_info(kind).fields]  # type: ignore[attr-defined]


def described(hint: Any) -> dict[str, Any]:
    """A type hint as data; `{"is": "other"}` for what cannot be drawn."""
    try:
        return _type(shapes.type_info(hint), 0)
    except (TypeError, NotImplementedError, NameError, AttributeError):
        return dict(OTHER)


def _field(field: Any, depth: int) -> dict[str, Any]:
    found = {"name": field.encode_name, "type": _type(field.type, depth), "required": field.required}
    if field.default is None or isinstance(field.default, (bool, int, float, str)):
        found["default"] = field.default
    return found


def _type(kind: Any, depth: int) -> dict[str, Any]:
    name = type(kind).__name__
    if name in _PLAIN:
        return {"is": _PLAIN[name], **_bounds(kind)}
    if name == "Metadata":
        return _type(kind.type, depth)
    if name == "LiteralType":
        return {"is": "one of", "values": list(kind.values)}
    if name == "EnumType":
        return {"is": "one of", "values": [member.value for member in kind.cls]}
    if name == "UnionType":
        return {"is": "any of", "of": [_type(part, depth) for part in kind.types]}
    if name in ("ListType", "SetType", "FrozenSetType", "VarTupleType"):
        return {"is": "list", "of": _type(kind.item_type, depth)}
    if name in ("StructType", "DataclassType") and depth < DEEPEST:
        return {"is": "object", "fields": [_field(field, depth + 1) for field in kind.fields]}
    return dict(OTHER)


def _bounds(kind: Any) -> dict[str, Any]:
    """What is allowed of a number, or of the length of a text."""
    least, most = getattr(kind, "ge", None), getattr(kind, "le", None)
    over, under = getattr(kind, "gt", None), getattr(kind, "lt", None)
    if over is not None:
        least = over + 1
    if under is not None:
        most = under - 1
    if getattr(kind, "min_length", None) is not None:
        least = kind.min_length
    return {key: value for key, value in (("least", least), ("most", most)) if value is not None}


def plain(value: Any) -> Any:
    """A value as JSON has it; the same for equal values, whatever the order of a set or a mapping."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, dict):
        return {str(key): plain(value[key]) for key in sorted(value, key=repr)}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name, None)) for field in dataclasses.fields(value)}
    names = getattr(value, "__struct_fields__", None)
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
    return f"<{type(value).__name__}>"
