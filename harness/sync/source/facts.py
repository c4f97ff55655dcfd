"""What is kept of one source file: definitions, calls, and what is read from and written to attributes.

Expressions are kept as *chains*: `self.config.sections[].make()` stands for names, attributes, subscripts and calls in
their order, without arguments. An expression that is none of these is the empty chain.
"""

from dataclasses import dataclass
from typing import NamedTuple

CALL = "()"
ITEM = "[]"


class Call(NamedTuple):
    """One call.

    Attributes:
        func: Chain of what is called.
        line: Where.
        args: Positional arguments; a text constant stands as `'text`, a starred one as the empty chain.
        keywords: Name -> chain, in their order; `**` has the empty name.
    """

    func: str
    line: int
    args: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]


class Write(NamedTuple):
    """One assignment to an attribute.

    Attributes:
        base: Chain of the object.
        name: The attribute; None where only running the code tells.
        line: Where.
        how: What writes it: `=`, `+= 1`, `None?` where it replaces None alone, `setattr` or `__dict__`.
        value: Chain of what is written.
    """

    base: str
    name: str | None
    line: int
    how: str
    value: str = ""


@dataclass(slots=True, eq=False)
class Function:
    """One function or method, with the functions that are defined in it and not only handed on.

    Attributes:
        path: The file, as it is shown.
        module: Dotted name of the module.
        owner: Name of the class, dotted where classes are nested; empty for a function.
        name: Its name.
        line: Where it begins.
        params: Parameters in their order, each with the types in its annotation.
        defaults: Parameter -> chain or text constant of its default.
        returns: The types in its return annotation.
        decorators: Chains.
        calls: Every call.
        writes: Every assignment to an attribute.
        loads: Chain that is read -> the lines.
        assigns: Local name or `self.name` -> chains of what is assigned to it.
        rebound: Local names that something which is no chain is assigned to as well.
        texts: Text constants that name modules with something in them: `package.module:function`, `a.b.C`.
        inner: Whether it stands in another function, which only hands it on; it has the names of that one, too.
    """

    path: str
    module: str
    owner: str
    name: str
    line: int
    params: tuple[tuple[str, tuple[str, ...]], ...]
    defaults: dict[str, str]
    returns: tuple[str, ...]
    decorators: tuple[str, ...]
    calls: tuple[Call, ...]
    writes: tuple[Write, ...]
    loads: dict[str, list[int]]
    assigns: dict[str, list[str]]
    rebound: frozenset[str]
    texts: tuple[str, ...]
    inner: bool = False

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it from every other function."""
        return (self.module, self.owner, self.name, self.line)


class Field(NamedTuple):
    """One annotated name in the body of a class.

    Attributes:
        name: The field.
        types: The types in its annotation.
        line: Where.
        declares: Dotted texts among the arguments of what `Annotated` adds.
        optional: Whether the annotation allows None.
    """

    name: str
    types: tuple[str, ...]
    line: int
    declares: tuple[str, ...]
    optional: bool = True


@dataclass(slots=True, eq=False)
class Class:
    """One class.

    Attributes:
        path: The file, as it is shown.
        module: Dotted name of the module.
        name: Its name, dotted where classes are nested.
        line: Where.
        bases: Chains.
        decorators: Chains.
        frozen: Whether it says `frozen=True`.
        fields: Annotated names.
        methods: Names of its methods.
        assigns: Name -> chains that are assigned to it in the body.
    """

    path: str
    module: str
    name: str
    line: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    frozen: bool
    fields: tuple[Field, ...]
    methods: tuple[str, ...]
    assigns: dict[str, list[str]]


@dataclass(slots=True, eq=False)
class Module:
    """One file.

    Attributes:
        path: The file, as it is shown.
        name: Dotted name from the root of the tree.
        package: Whether it is an `__init__.py`.
        imports: Name -> dotted module and the name in it, None for the module itself; relative ones resolved.
        stars: Modules all of whose names it takes.
        classes: Every class, nested ones too.
        functions: Every function and method.
        assigns: Top-level name -> chains that are assigned to it.
        types: Top-level name -> the types in its annotation.
        texts: Top-level name -> a text constant it is.
    """

    path: str
    name: str
    package: bool
    imports: dict[str, tuple[str, str | None]]
    stars: tuple[str, ...]
    classes: tuple[Class, ...]
    functions: tuple[Function, ...]
    assigns: dict[str, list[str]]
    types: dict[str, tuple[str, ...]]
    texts: dict[str, str]
