"""Commands that run a failure again. Anybody can write a report: only our own commands are taken over, part by part.

A line that reads `rerun: …` in a report is foreign text. It is read as `staticfire run FILE --cell ID`, with nothing
but options that choose how that cell runs, and written anew from its parts; any other line is no command.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_BEGIN: Final = ["staticfire", "run"]
_CELL: Final = "--cell"
_BACKEND: Final = "--kernel-backend"
_BACKENDS: Final = frozenset({"torch", "triton"})


@dataclass(frozen=True, slots=True)
class Rerun:
    """The command that runs one cell again.

    Attributes:
        matrix: The matrix, a path or a name.
        cell: Id of the cell.
        backend: The kernels it is run on; empty for those of the cell.
    """

    matrix: str
    cell: str
    backend: str = ""

    @property
    def command(self) -> str:
        """The command, quoted for a shell."""
        return self.of([self.cell])

    def of(self, cells: Iterable[str]) -> str:
        """The command for several cells of the same matrix."""
        named = (word for cell in dict.fromkeys(cells) for word in (_CELL, cell))
        return shlex.join([*_BEGIN, self.matrix, *([_BACKEND, self.backend] if self.backend else []), *named])


def rerun(line: str) -> Rerun | None:
    """Read our own command; None for any other text."""
    try:
        words = shlex.split(line)
    except ValueError:  # an unbalanced quote
        return None
    if words[:2] != _BEGIN or len(words) < 3 or not is_name(words[2]):
        return None
    rest = words[3:]
    options = dict(zip(rest[::2], rest[1::2], strict=False))
    cell, backend = options.get(_CELL, ""), options.get(_BACKEND, "")
    known = len(rest) == 2 * len(options) and options.keys() <= {_CELL, _BACKEND}
    if not known or not cell.isprintable() or not cell or backend not in {"", *_BACKENDS}:
        return None
    return Rerun(words[2], cell, backend)


def is_name(text: str) -> bool:
    """Whether a text can be a word of a command that is no option and that a person sees whole."""
    return bool(text) and text.isprintable() and not text.startswith("-")


def pytest_command(tests: Iterable[str]) -> str:
    """The command that runs tests again; empty where no test has a name that can be typed.

    pytest takes a word with `-` in front for an option, and one with `@` for a file of options.
    """
    named = (f"./{test}" if test.startswith(("-", "@")) else test for test in dict.fromkeys(tests))
    words = [test for test in named if is_name(test)]
    return shlex.join(["pytest", *words]) if words else ""
