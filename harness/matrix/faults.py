"""Faults of a matrix file: collected with line and key, reported all at once."""

from dataclasses import dataclass, field

from staticfire.harness.errors import InputError
from staticfire.harness.matrix.locate import Lines


@dataclass(slots=True)
class Faults:
    """The faults found so far in one file."""

    where: str
    lines: Lines
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: tuple[str | int, ...], message: str) -> None:
        """Note a fault at a key path such as `("constraint", 2, "when")`."""
        self.found.append((self.lines.of(*path), f"{show(path)}: {message}"))

    def check(self) -> None:
        """Raise if there are any.

        Raises:
            InputError: One line a fault, in the order of the file.
        """
        if self.found:
            faults = dict.fromkeys(f"{self.where}:{line}: {text}" for line, text in sorted(self.found))
            raise InputError("\n".join(faults))


def show(path: tuple[str | int, ...]) -> str:
    """A key path as people write it: `constraint[2].when`, counted from 1."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text
