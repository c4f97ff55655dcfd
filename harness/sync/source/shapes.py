"""The shapes by which the analysis knows what it looks for: the only names it takes for granted, none of an engine's.

Everything else, such as which class a ready response is, follows from how it is used.
"""

from collections.abc import Mapping
from typing import Final

SPAWNS: Final[Mapping[str, str]] = {"Process": "target"}
"""Last name of a call that starts a process -> the keyword with the function that runs there."""

RUN_METHOD: Final = "run"
"""The method that runs in the process of a class which inherits from one of these."""

REMOTE_CLASSES: Final = frozenset({"ray.remote"})
"""Calls and decorators that make a class whose methods run in a process of their own."""

REMOTE_METHOD: Final = "remote"
"""The method of a class decorated with one of these, also after `.options(…)`, that makes an object of it."""

DECODERS: Final = frozenset({"decode", "convert", "Decoder", "MsgpackDecoder", "TypeAdapter", "loads"})
"""Last names of calls that make an object out of bytes; the class is an argument, or the keyword `type`."""

ENUMERATIONS: Final = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
"""Last names of bases whose classes have members, each of which is a value."""

COPIERS: Final = frozenset({"replace", "copy", "deepcopy", "model_copy", "evolve"})
"""Last names of calls that give a copy of an object: what is written to it stays in it."""

DEEP_COPIERS: Final = frozenset({"deepcopy"})
"""Last names of calls whose copy has nothing in common with the original; what other copies hold is the original's."""

BULK_READERS: Final = frozenset({"asdict", "astuple", "vars", "fields", "model_dump", "as_dict", "to_dict"})
"""Last names of calls that read every field of their argument, or of the object whose method they are."""

NESTED_READERS: Final = BULK_READERS - {"vars", "fields"}
"""Those that go on to the fields of the objects inside."""

SETTERS: Final = frozenset({"setattr", "object.__setattr__"})
"""Calls that write the attribute named by their second argument."""

SETTER: Final = "__setattr__"
"""The method that writes the attribute named by its argument."""

GATHERERS: Final = frozenset({"add", "append", "extend", "update", "insert", "setdefault"})
"""Methods that put their argument into the object: what comes out of it later may be that."""

SINGLE_GATHERERS: Final = frozenset({"add", "append", "insert"})
"""Those whose last argument is one element."""

CONSTRUCTORS: Final = ("__new__", "__init__", "__post_init__", "model_post_init")
"""Methods that run when an object is made."""

VALIDATORS: Final = frozenset({"field_validator", "model_validator", "validator", "root_validator"})
"""Last names of decorators whose methods run when an object is made."""

PROPERTIES: Final = frozenset({"property", "cached_property"})
"""Last names of decorators that make a method look like an attribute."""

LACKING: Final = "__getattr__"
"""The method that is asked for an attribute which an object lacks."""

MAPPING: Final = "__dict__"
"""The attribute that holds all others."""
