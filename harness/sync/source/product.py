"""Which files of a checkout are the product: tests, scripts and second copies are not, by what they are.

An audit compares what the parts of one running engine write and read. A test makes configurations of its own, a script
starts an engine as a user would, and a second copy of a package is never imported beside the first.

No name of a folder is known here:

* A file is a test by the names that pytest collects; a folder is one of tests if most of its files are.
* In a tree with a package, a folder is one of scripts if it neither is a package nor holds mostly packages, or if most
  of its files can run on their own.
* A package is a copy if most of its files are those of another one.

What the product imports, or names in a text to have it run, is product all the same: see `wanted`.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from staticfire.harness.sync.source.facts import Module

Kind = Literal["tests", "scripts", "copies"]

TEST_FILE: Final = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
"""The files that pytest collects, and that with its fixtures."""
RUNS_ALONE: Final = re.compile(rb"""^if\s+__name__\s*==\s*['"]__main__['"]""", re.MULTILINE)
INIT: Final = "__init__.py"


class Left(NamedTuple):
    """What of a tree is no product.

    Attributes:
        kind: What it is.
        files: How many files.
        where: Folders and single files, named from the root.
    """

    kind: Kind
    files: int
    where: tuple[str, ...]


@dataclass(slots=True)
class Split:
    """The files of a tree.

    Attributes:
        root: What the user named.
        product: What is audited.
        left: File -> what it is instead, and the folder that decided so, or the file itself.
    """

    root: Path
    product: list[Path] = field(default_factory=list)
    left: dict[Path, tuple[Kind, Path]] = field(default_factory=dict)

    def take(self, path: Path) -> None:
        """Make a file product after all."""
        del self.left[path]
        self.product.append(path)

    def left_out(self) -> tuple[Left, ...]:
        """What is no product, by kind."""
        found: dict[Kind, list[Path]] = defaultdict(list)
        for kind, decided in self.left.values():
            found[kind].append(decided)
        return tuple(
            Left(kind, len(places), tuple(sorted({place.relative_to(self.root).as_posix() for place in places})))
            for kind, places in sorted(found.items())
        )


def split(files: Sequence[Path], root: Path) -> Split:
    """Tell the product from the rest. Nothing is parsed.

    Args:
        files: Every Python file below `root`.
        root: What the user named: a package, of which all but tests is product, or a folder with packages in it.
    """
    found = Split(root)
    units = {root: list(files)} if (root / INIT).exists() else _units(files, root)
    kinds = {unit: _kind(unit, members) if len(units) > 1 else None for unit, members in units.items()}
    packages = {unit: members for unit, members in units.items() if kinds[unit] is None and (unit / INIT).exists()}
    copies = _copies(packages)
    for unit, members in units.items():
        kind = "copies" if unit in copies else kinds[unit]
        if kind is None and packages and unit not in packages and not any(unit in other.parents for other in packages):
            kind = "scripts"
        if kind is not None:
            found.left |= dict.fromkeys(members, (kind, unit))
            continue
        tests = _tests(unit, members)
        found.left |= {path: ("tests", decided) for path, decided in tests.items()}
        found.product += [path for path in members if path not in tests] if tests else members
    return found if found.product else Split(root, list(files))


def _units(files: Iterable[Path], root: Path) -> dict[Path, list[Path]]:
    """Packages that lie in no other, and what else there is, by the folders and files that lie in the root itself."""
    packages: dict[Path, Path | None] = {}
    tops: dict[Path, list[tuple[Path, Path | None]]] = defaultdict(list)
    for path in files:
        folder = path.parent
        if folder not in packages:
            inside = [above for above in (folder, *folder.parents) if root in above.parents]
            packages[folder] = next((above for above in reversed(inside) if (above / INIT).exists()), None)
        top = root / path.relative_to(root).parts[0]
        tops[top].append((path, packages[folder]))
    units: dict[Path, list[Path]] = defaultdict(list)
    for top, members in tops.items():
        mostly = 2 * sum(package is not None for _, package in members) > len(members)
        for path, package in members:
            units[package if package is not None and mostly else top].append(path)
    return units


def _is_test(path: Path) -> bool:
    return TEST_FILE.fullmatch(path.name) is not None


def _kind(unit: Path, members: Sequence[Path]) -> Kind | None:
    """What most files of a folder are, if not part of a package."""
    modules = [path for path in members if path.name != INIT]
    if 2 * sum(map(_is_test, modules)) > len(modules):
        return "tests"
    if unit.is_file():
        return None
    rest, alone = len(modules), 0
    for path in modules:
        if 2 * (alone + rest) <= len(modules) or 2 * alone > len(modules):
            break  # decided, whatever the others are
        rest -= 1
        alone += _runs_alone(path)
    return "scripts" if 2 * alone > len(modules) else None


def _runs_alone(path: Path) -> bool:
    try:
        return RUNS_ALONE.search(path.read_bytes()) is not None
    except OSError:
        return False


def _tests(unit: Path, members: Iterable[Path]) -> dict[Path, Path]:
    """Tests inside a package -> the outermost folder of tests, or the file itself."""
    alone = [path for path in members if _is_test(path)]
    above = {path: [folder for folder in path.parents if unit in folder.parents] for path in alone}
    tests = Counter(str(folder) for folders in above.values() for folder in folders)
    modules = Counter[str]()
    for path in members if tests else ():
        folder, name = os.path.split(path)
        while name != INIT and len(folder) > len(str(unit)):
            modules[folder] += 1
            folder = os.path.dirname(folder)  # noqa: PTH120 - a path object for every folder of every file is slow
    mostly = {folder for folder, number in tests.items() if 2 * number > modules[folder]}
    found: dict[Path, Path] = {}
    for path in members if mostly else alone:
        folders = [folder for folder in path.parents if str(folder) in mostly] if mostly else []
        if folders or path in above:
            found[path] = folders[-1] if folders else path
    return found


def _copies(packages: Mapping[Path, Sequence[Path]]) -> set[Path]:
    """Packages that are copies of others: of a pair, the one deeper in the tree, or that calls itself otherwise."""
    ranked = sorted(packages, key=lambda unit: (len(unit.parts), -len(packages[unit]), unit))
    inside = {
        unit: {path.relative_to(unit).as_posix() for path in members if path.name != INIT}
        for unit, members in packages.items()
    }
    found: set[Path] = set()
    for index, unit in enumerate(ranked):
        for other in ranked[:index]:
            common = inside[unit] & inside[other]
            if other in found or 2 * len(common) <= len(inside[unit]):
                continue
            same = sum((unit / name).read_bytes() == (other / name).read_bytes() for name in common)
            if unit.name == other.name or 2 * same > len(inside[unit]):
                renamed = len(unit.parts) == len(other.parts) and not _says(other, packages[other])
                found.add(other if renamed else unit)
                break
    return found


def _says(unit: Path, members: Iterable[Path]) -> bool:
    """Whether a package imports itself by the name of its folder."""
    said = re.compile(rb"^\s*(from|import)\s+%s\b" % re.escape(unit.name).encode(), re.MULTILINE)
    return any(said.search(path.read_bytes()) for path in members)


def wanted(modules: Iterable[Module], names: Mapping[str, Path]) -> set[Path]:
    """What of the rest some modules import, or name in a text such as `package.module:function`.

    Args:
        modules: Modules of the product.
        names: Dotted name -> file, of everything that is none.
    """
    found: set[Path] = set()
    for said in {said for module in modules for said in _said(module)} if names else ():
        parts = said.replace(":", ".").split(".")
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if name in names:
                above = (".".join(parts[:length]) for length in range(1, end + 1))
                found |= {names[package] for package in above if package in names}
                break
    return found


def _said(module: Module) -> Iterator[str]:
    for origin, name in module.imports.values():
        yield (f"{origin}.{name}" if name else origin).removeprefix(".")
    yield from (star.removeprefix(".") for star in module.stars)
    yield from module.texts.values()
    for function in module.functions:
        yield from function.texts
