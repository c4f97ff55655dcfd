"""The configuration of an engine: one class, whose annotated fields are sections, whose fields are what is settled."""

from collections.abc import Iterable
from typing import NamedTuple

from staticfire.harness.sync.source.expressions import COPY
from staticfire.harness.sync.source.facts import CALL, Class, Function
from staticfire.harness.sync.source.inference import Inference, Instance
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.shapes import ENUMERATIONS


class Path(NamedTuple):
    """One field.

    Attributes:
        section: The name of the section in the class that holds it, dotted; empty for a field of that class itself.
        name: The field.
    """

    section: str
    name: str

    def __str__(self) -> str:
        return f"{self.section}.{self.name}" if self.section else self.name


class Sections:
    """The classes that make up a configuration.

    Args:
        program: The tree.
        inference: Types in it.
        root: The class of the whole configuration.
    """

    def __init__(self, program: Program, inference: Inference, root: Class) -> None:
        self.program = program
        self.inference = inference
        self.root = root
        self.paths: dict[Class, str] = {}
        pending = [(root, "")]
        while pending:
            cls, path = pending.pop(0)
            for part in program.line(cls):
                if part not in self.paths:
                    self.paths[part] = path
            for name, (owner, _, types, _) in program.fields(cls).items():
                pending += [
                    (value.cls, f"{path}.{name}".removeprefix("."))
                    for value in inference.annotated(types, program.modules[owner.module])
                    if isinstance(value, Instance) and not value.nested and value.cls not in self.paths
                    if self._has_fields(value.cls)
                ]

    def _has_fields(self, cls: Class) -> bool:
        """Whether objects of a class hold fields; a member of an enumeration is a value itself."""
        line = self.program.line(cls)
        enumeration = any(base.rpartition(".")[2] in ENUMERATIONS for part in line for base in part.bases)
        return not enumeration and any(part.fields for part in line)

    def section(self, cls: Class) -> str | None:
        """The path of a class in the configuration, or of one it inherits from; None where it is no part of it."""
        for part in self.program.line(cls):
            if part in self.paths and (part.fields or part is self.root):
                return self.paths[part]
        return None

    def place(self, base: str, name: str, function: Function) -> tuple[Path | None, bool]:
        """Which field `base.name` is.

        Returns:
            The field, None where it is none; and whether the object is a copy that the function itself made.
        """
        for value in self.inference.of(base, function) if base else ():
            if isinstance(value, Instance) and not value.nested:
                section = self.section(value.cls)
                if section is not None and self.is_field(value.cls, name):
                    return Path(section, name), self.copied(base, function)
        return None, False

    def copied(self, base: str, function: Function) -> bool:
        """Whether the first name of a chain is bound to what a copying call gives, or to a new object."""
        first, _, rest = base.partition(".")
        assigned = [chain for chain in function.assigns.get(first, ()) if not chain.startswith((":", COPY))]
        return bool(assigned) and all(
            chain.endswith(CALL) and self.inference.makes_anew(chain.removesuffix(CALL), rest, function)
            for chain in assigned
        )

    def is_field(self, cls: Class, name: str) -> bool:
        """Whether an attribute holds a value, rather than being a method or another section."""
        if name.startswith("__") or self.program.method(cls, name) is not None:
            return False
        return not self.holds_section(cls, name)

    def holds_section(self, cls: Class, name: str) -> bool:
        """Whether a field of a class is a section itself."""
        found = self.program.fields(cls).get(name)
        if found is None:
            return False
        owner, _, types, _ = found
        values = self.inference.annotated(types, self.program.modules[owner.module])
        return any(isinstance(value, Instance) and value.cls in self.paths for value in values)

    def fields(self) -> dict[Path, tuple[Class, int]]:
        """Every declared field, with the class that declares it and the line."""
        found: dict[Path, tuple[Class, int]] = {}
        for cls, path in self.paths.items():
            for name, (owner, _, _, line) in self.program.fields(cls).items():
                if self.is_field(cls, name):
                    found.setdefault(Path(path, name), (owner, line))
        return found


def root_of(program: Program, inference: Inference, seen: Iterable[Class]) -> Class | None:
    """The class of the whole configuration: of those that are seen, one that declares others as its fields."""
    classes = list(dict.fromkeys(seen))
    holds = {
        cls: sum(
            isinstance(value, Instance) and value.cls is not cls and value.cls in classes
            for owner, _, types, _ in program.fields(cls).values()
            for value in inference.annotated(types, program.modules[owner.module])
        )
        for cls in classes
    }
    best = max(holds, key=lambda cls: holds[cls], default=None)
    return best if best is not None and holds[best] else None
