"""Every mutant of every kernel, a fair sample of them, and those that are known to change nothing."""

import ast
import difflib
import random
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mutation.operators import OPERATORS, Edit, Scope

ROOT: Final = Path(__file__).resolve().parent.parent.parent
EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True)
class Mutant:
    """One change of one kernel.

    Attributes:
        folder: Folder of `kernels/`.
        function: The jitted function.
        edit: What is changed.
        source: Text of the whole file before.
    """

    folder: str
    function: str
    edit: Edit
    source: str

    @property
    def old(self) -> str:
        """What stood there, on one line."""
        return " ".join(self.source[slice(*self.edit.span)].split())

    @property
    def line(self) -> int:
        """Where it stood."""
        return self.source.count("\n", 0, self.edit.span[0]) + 1

    @property
    def name(self) -> str:
        """Reads aloud; the same edit of a line that moved has the same name but for the number."""
        return f"{self.folder}:{self.line} {self.function} {self.edit.operator}: {self.old} -> {self.edit.text}"

    @property
    def mutated(self) -> str:
        """Text of the whole file after."""
        start, end = self.edit.span
        return self.source[:start] + self.edit.text + self.source[end:]

    @property
    def difference(self) -> str:
        """A unified diff."""
        path = f"kernels/{self.folder}/triton.py"
        lines = difflib.unified_diff(self.source.splitlines(), self.mutated.splitlines(), path, path, lineterm="", n=1)
        return "\n".join(lines)


def mutants_of(folder: str, text: str) -> list[Mutant]:
    """Every mutant of one file, in the order of its text."""
    found = []
    for function in ast.parse(text).body:
        if isinstance(function, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in function.decorator_list):
            scope = Scope(function, text)
            edits = {edit for operator in OPERATORS for edit in operator(scope)}
            ordered = sorted(edits, key=lambda edit: (edit.span, edit.operator, edit.text))
            found += [Mutant(folder, function.name, edit, text) for edit in ordered]
    return found


def every_mutant(root: Path = ROOT) -> list[Mutant]:
    """Every mutant of every kernel."""
    files = sorted((root / "kernels").glob("*/triton.py"))
    return [mutant for file in files for mutant in mutants_of(file.parent.name, file.read_text())]


def draw(candidates: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Take turns over the kernels, and in each kernel over the operators, so that all are met; the rest is chance."""
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    kernels: dict[tuple[str, str], dict[str, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for mutant in candidates:
        kernels[mutant.folder, mutant.function][mutant.edit.operator].append(mutant)
    queues = []
    for operators in kernels.values():
        piles = list(operators.values())
        chance.shuffle(piles)
        for pile in piles:
            chance.shuffle(pile)
        depth = max(map(len, piles))
        queues.append([pile[level] for level in range(depth) for pile in piles if level < len(pile)])
    turns = [queue[level] for level in range(max(map(len, queues))) for queue in queues if level < len(queue)]
    return sorted(turns[:count], key=lambda mutant: (mutant.folder, mutant.edit))


def reasons(candidates: Sequence[Mutant], path: Path = EQUIVALENT) -> dict[Mutant, str]:
    """Why some mutants compute what the kernel computes.

    Raises:
        SystemExit: An entry names no mutant, so that it says nothing of the kernels as they are.
    """
    known: dict[Mutant, str] = {}
    for entry in tomllib.loads(path.read_text())["mutant"] if path.exists() else ():
        wanted = (entry["kernel"], entry["operator"], entry["old"], entry["new"])
        hits = [m for m in candidates if (f"{m.folder}.{m.function}", m.edit.operator, m.old, m.edit.text) == wanted]
        if not hits:
            raise SystemExit(f"{path.name}: no kernel has the mutant {wanted}; drop or correct the entry")
        known |= dict.fromkeys(hits, entry["reason"])
    return known


def callers(text: str) -> dict[str, frozenset[str]]:
    """For each jitted function of a file, those whose launch runs it: itself, and what calls it, however indirectly."""
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    calls = {
        name: {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in functions}
        for name, function in functions.items()
    }
    found = {}
    for name in functions:
        reach = {name}
        while more := {other for other, called in calls.items() if called & reach} - reach:
            reach |= more
        found[name] = frozenset(reach)
    return found
