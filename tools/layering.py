"""Hold the import directions of the repository, from its source text alone.

`python tools/layering.py` prints every violation as `file:line: reason: offending line` and exits 1 if there is one.
tests/repo/test_layering.py runs the same checks and proves on planted faults that they can fail.

Three kinds of import are told apart: at import time, lazy (inside a function, or a dotted string such as the CLI's
verb table), and for type checkers only. Directions hold for the first two, cycles and closures follow the first.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDERS = ("kernels", "engine", "harness", "matrices")

# Who may import whom. The first prefix of the importer that stands here decides; every entry of harness has a reason,
# for harness reaches the engine through these doors alone.
ALLOWED: Mapping[str, Sequence[str]] = {
    "kernels": ["kernels"],
    "engine": ["engine", "kernels"],
    "matrices": [],
    "harness.probe": ["harness", "matrices", "engine"],  # asks the reference engine about a configuration
    "harness.run": ["harness", "matrices", "engine"],  # executes cells
    "harness.start": ["harness", "matrices", "engine"],  # starts engines and shows them
    "harness.sync": ["harness", "matrices", "engine"],  # audits a running engine
    "harness.plugin": ["harness", "matrices", "engine"],  # runners as fixtures
    "harness.oracle": ["harness", "matrices", "engine", "kernels"],  # drives the engine for `run`, compares, isolates
    "harness.models": ["harness", "matrices", "engine.config", "engine.errors"],  # config.json -> ModelInfo, Device
    "harness.budgets": ["harness", "kernels"],  # compiles kernels and holds them to their budgets
    "harness.matrix": ["harness", "matrices", "engine.config", "engine.errors"],  # the verdict of a cell
    "harness.differential": ["harness", "matrices", "engine.config", "engine.errors"],  # our rules beside an engine
    "harness.triage": ["harness", "matrices", "engine.config"],  # what engines say when they refuse by a rule
    "harness.cli": ["harness", "matrices", "engine.config", "engine.errors"],  # explain, rule and the error handler
    "harness": ["harness", "matrices"],
    "__main__": ["harness"],
    "": [],
}

# Folders that nothing else in their layer may import: they are the top.
TOPS: Mapping[str, str] = {"harness.cli": "__main__"}

HEAVY = ("torch", "transformers", "triton", "tokenizers", "safetensors", "huggingface_hub")

# Neither these nor anything that importing them imports may import a heavy library.
LIGHT = (
    "engine.config",
    "engine.scheduler",
    "engine.cache",
    "engine.request",
    "engine.sampling_params",
    "engine.outputs",
    "engine.errors",
    "engine.process",
    "engine.ready",
    "engine.wire",
    "engine.client",
    "matrices",
    "harness.matrix",
    "harness.run.result",
    "harness.report",
    "harness.shard",
    "harness.pipeline",
    "harness.triage",
    "harness.differential",
    "harness.plugin.entry",  # every pytest of this Python imports it
    "harness.plugin.helpers",
    "harness.plugin.marker",
    "harness.plugin.guards",
    "harness.plugin.workers",
    "harness.plugin.strategies",
    "harness.cli",
)

# The exceptions: (module, heavy library that it may import inside a function).
LAZY: Mapping[tuple[str, str], str] = {
    (
        "harness.cli.explain",
        "huggingface_hub",
    ): "only when MODEL is neither a file nor a known name: fetches config.json",
}

# What these verbs import lazily counts as well, for using the verb runs it.
LIGHT_VERBS = (
    "harness.cli.annotate",
    "harness.cli.check",
    "harness.cli.explain",
    "harness.cli.matrix",
    "harness.cli.pipeline",
    "harness.cli.rule",
    "harness.cli.rules",
    "harness.cli.triage",
)

DOTTED = re.compile(r"staticfire((?:\.\w+)+)(?::\w+)?")


@dataclass(frozen=True)
class Import:
    """One import of one module by another; names are relative to `staticfire` for first-party modules."""

    importer: str
    target: str
    first_party: bool
    lazy: bool
    file: str
    line: int
    text: str

    def complain(self, reason: str) -> str:
        """Say what is wrong here, with the place and the line itself."""
        return f"{self.file}:{self.line}: {reason}: {self.text}"


def within(module: str, prefix: str) -> bool:
    """Tell whether `module` is `prefix` or lies inside it."""
    return module == prefix or module.startswith(prefix + ".")


@dataclass(frozen=True)
class Tree:
    """The modules of a checkout and their imports."""

    root: Path

    @cached_property
    def files(self) -> dict[str, Path]:
        """Module name without the leading `staticfire.` -> file."""
        found: dict[str, Path] = {}
        places = [(self.root / folder, folder) for folder in FOLDERS]
        for base, prefix in places:
            for path in sorted(base.rglob("*.py")):
                parts = [prefix, *path.relative_to(base).with_suffix("").parts]
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        for path in sorted((self.root / "src" / "staticfire").glob("*.py")):
            found["" if path.stem == "__init__" else path.stem] = path
        return found

    @cached_property
    def imports(self) -> list[Import]:
        """Every import but those for type checkers only."""
        return [found for module, path in self.files.items() for found in self._of(module, path)]

    @cached_property
    def at_import_time(self) -> dict[str, list[Import]]:
        """Importer -> its imports that run when it is imported."""
        table: dict[str, list[Import]] = {module: [] for module in self.files}
        for found in self.imports:
            if not found.lazy:
                table[found.importer].append(found)
        return table

    def _of(self, module: str, path: Path) -> Iterator[Import]:
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        file = path.relative_to(self.root).as_posix()
        for node, lazy in walk(ast.parse(source, filename=file), lazy=False):
            for target, first_party in self._targets(module, path, node):
                text = lines[node.lineno - 1].strip()
                yield Import(
                    module, target, first_party, lazy or isinstance(node, ast.Constant), file, node.lineno, text
                )

    def _targets(self, module: str, path: Path, node: ast.AST) -> Iterator[tuple[str, bool]]:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield self._named(alias.name)
            case ast.ImportFrom(level=0, module=str(origin), names=names):
                target, first_party = self._named(origin)
                yield from self._members(target, first_party, names)
            case ast.ImportFrom(level=level, module=origin, names=names):
                package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
                base = package[: len(package) - (level - 1)]
                yield from self._members(".".join([*base, *([origin] if origin else [])]), True, names)
            case ast.Constant(value=str(text)):
                dotted = DOTTED.fullmatch(text)
                if dotted is not None and dotted[1].removeprefix(".").split(".")[0] in FOLDERS:
                    yield dotted[1].removeprefix("."), True

    @staticmethod
    def _named(name: str) -> tuple[str, bool]:
        if within(name, "staticfire"):
            return name.removeprefix("staticfire").removeprefix("."), True
        return name, False

    def _members(self, target: str, first_party: bool, names: Sequence[ast.alias]) -> Iterator[tuple[str, bool]]:
        """`from package import module` imports the module, not only the package."""
        modules = [f"{target}.{alias.name}".removeprefix(".") for alias in names] if first_party else []
        inside = [name for name in modules if name in self.files]
        yield from ((name, True) for name in inside)
        if len(inside) < len(names):
            yield target, first_party


def walk(node: ast.AST, *, lazy: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom | ast.Constant, bool]]:
    """Yield import statements and strings below `node`, each with whether it runs only when a function is called."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom | ast.Constant):
            yield child, lazy
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield from walk(ast.Module([statement], []), lazy=lazy)
        else:
            deferred = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, lazy=lazy or deferred)


def directions(tree: Tree) -> list[str]:
    """Imports that go against ALLOWED, against TOPS, or reach a folder under its bare name."""
    faults = []
    for found in tree.imports:
        if not found.first_party:
            if found.target.split(".")[0] in FOLDERS:
                faults.append(found.complain(f"bare import of {found.target}, write staticfire.{found.target}"))
            continue
        if not found.target:  # staticfire itself holds the version and nothing else
            continue
        rule = max((prefix for prefix in ALLOWED if not prefix or within(found.importer, prefix)), key=len)
        if not any(within(found.target, target) for target in ALLOWED[rule]):
            faults.append(found.complain(f"{rule or 'staticfire'} may not import {found.target}"))
        for top, opener in TOPS.items():
            if within(found.target, top) and not within(found.importer, top) and found.importer != opener:
                faults.append(found.complain(f"only {opener} may import {top}"))
    return faults


def chain_to_heavy(tree: Tree, start: str) -> list[Import]:
    """Return the shortest chain of import-time imports from a module to a heavy library, empty if there is none."""
    queue: list[tuple[str, list[Import]]] = [(start, [])]
    seen = {start}
    while queue:
        module, chain = queue.pop(0)
        for found in tree.at_import_time.get(module, []):
            if not found.first_party:
                if found.target.split(".")[0] in HEAVY:
                    return [*chain, found]
                continue
            for target in with_parents(found.target):
                if target in tree.files and target not in seen:
                    seen.add(target)
                    queue.append((target, [*chain, found]))
    return []


def with_parents(module: str) -> list[str]:
    """Importing a.b.c imports a and a.b first."""
    parts = module.split(".")
    return [".".join(parts[: index + 1]) for index in range(len(parts))]


def heavy(tree: Tree) -> list[str]:
    """Heavy libraries reached from modules that must be light."""
    faults = []
    for module in tree.files:
        if not any(within(module, prefix) for prefix in LIGHT):
            continue
        starts = [parent for parent in with_parents(module) if parent in tree.files]
        if any(within(module, verb) for verb in LIGHT_VERBS):
            starts += [found.target for found in tree.imports if found.importer == module and found.first_party]
        for start in starts:
            chain = chain_to_heavy(tree, start)
            if chain:
                path = " -> ".join([step.importer for step in chain] + [chain[-1].target])
                faults.append(chain[-1].complain(f"{module} must stay light but reaches it ({path})"))
        faults += [
            found.complain(f"{module} must stay light, even lazily")
            for found in tree.imports
            if found.importer == module and found.lazy and not found.first_party
            for library in [found.target.split(".")[0]]
            if library in HEAVY and (module, library) not in LAZY
        ]
    return sorted(set(faults))


def cycles(tree: Tree) -> list[str]:
    """Modules that import one another at import time, each cycle reported once, at one of its imports."""
    faults = []
    state: dict[str, int] = {}  # absent: unseen, 1: on the current path, 2: done

    def visit(module: str, path: list[str]) -> None:
        state[module] = 1
        for found in tree.at_import_time[module]:
            if not found.first_party or found.target not in tree.files or within(module, found.target):
                continue  # a package's own __init__ is always imported first: no cycle of our making
            if state.get(found.target) == 1:
                loop = [*path[path.index(found.target) :], found.target]
                faults.append(found.complain(f"import cycle {' -> '.join(loop)}"))
            elif found.target not in state:
                visit(found.target, [*path, found.target])
        state[module] = 2

    for module in tree.files:
        if module not in state:
            visit(module, [module])
    return faults


def check(root: Path) -> list[str]:
    """Return every violation in the checkout at `root`."""
    tree = Tree(root)
    return directions(tree) + heavy(tree) + cycles(tree)


if __name__ == "__main__":
    violations = check(Path(__file__).resolve().parent.parent)
    print("\n".join(violations) or "layering: every import keeps its direction")
    sys.exit(1 if violations else 0)
