"""Compiles what was asked for, holds it to the budgets, and gathers the outcome as a value for every format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from staticfire.harness.budgets.libraries import needed
from staticfire.harness.errors import InputError
from staticfire.kernels.budgets import compile as compiling
from staticfire.kernels.budgets.file import BudgetError, Budgets, Key, dump, load, path_for, short_version
from staticfire.kernels.budgets.judge import Finding, judge, key_of, refused, stale, updated
from staticfire.kernels.registry import OPS, find_op
from staticfire.kernels.targets import TARGETS, Target, find_target
from staticfire.kernels.variant import Variant


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel on one target.

    Attributes:
        made: What came out of the compiler.
        findings: What is not as its budget says.
    """

    made: compiling.Compiled
    findings: tuple[Finding, ...]

    @property
    def key(self) -> Key:
        """Op, variant and target by name."""
        return key_of(self.made)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a format may tell.

    Attributes:
        triton: Version of Triton that compiled.
        rows: Every kernel that was asked for, by op, variant and target.
        stale: Budgets that belong to no kernel.
        budgets: Where the budgets are.
    """

    triton: str
    rows: tuple[Row, ...]
    stale: tuple[Finding, ...]
    budgets: Path

    @property
    def findings(self) -> list[Finding]:
        """All findings."""
        return [*(finding for row in self.rows for finding in row.findings), *self.stale]

    @property
    def last_line(self) -> str:
        """The outcome in one line."""
        fresh = sum(row.made.fresh for row in self.rows)
        targets = {row.made.target.name for row in self.rows}
        within = sum(not row.findings for row in self.rows)
        budgets = _count(len(self.stale), "stale budget") if self.stale else ""
        tail = ", ".join(filter(None, [f"{within} within budget", budgets]))
        return (
            f"{_count(len(self.rows), 'kernel')} for {_count(len(targets), 'target')} with Triton {self.triton} "
            f"({fresh} compiled, {len(self.rows) - fresh} remembered): {tail}"
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for.

    Attributes:
        ops: Names; none for all.
        targets: Names; none for all.
        budgets: File of budgets; None for ours for the installed Triton.
        cache: Folder of remembered results.
        processes: Compiling processes.
        progress: Called with (compiled, to compile).
    """

    ops: Sequence[str]
    targets: Sequence[str]
    budgets: Path | None
    cache: Path
    processes: int
    progress: Callable[[int, int], None]


def gather(request: Request, *, must: bool) -> tuple[Report, Budgets]:
    """Compile and judge.

    Args:
        request: What was asked for.
        must: Whether there have to be budgets.

    Returns:
        (the report, the budgets it was judged by).

    Raises:
        InputError: An unknown name, no budgets though there must be, a broken file, or a library is missing.
    """
    wanted = select(request.ops, request.targets)
    version = compiling.triton_version()
    path = request.budgets or path_for(version)
    budgets = _load(path, version, must=must)
    made = compiling.compile_all(wanted, request.cache, processes=request.processes, progress=request.progress)
    rows = tuple(Row(one, tuple(judge(one, budgets))) for one in made)
    gone = stale(budgets, {row.key for row in rows}, request.ops, request.targets)
    return Report(version, rows, tuple(gone), path), budgets


def renewed(report: Report, budgets: Budgets) -> tuple[str, list[Finding]]:
    """Make budgets of what the kernels take.

    Args:
        report: What they take.
        budgets: The file before.

    Returns:
        (text of the file after, what is refused: then nothing may be written).
    """
    wrong = [finding for row in report.rows for finding in refused(row.made, budgets.allowances.get(row.key))]
    after = updated(budgets, [row.made for row in report.rows], {finding.key for finding in report.stale})
    return dump(after), wrong


def select(ops: Sequence[str], targets: Sequence[str]) -> list[tuple[Variant, Target]]:
    """List what is compiled.

    Args:
        ops: Names; none for all.
        targets: Names; none for all.

    Returns:
        Variants, each on each target.

    Raises:
        InputError: An unknown name, or a library is missing.
    """
    try:
        chosen = [find_op(name) for name in dict.fromkeys(ops)] or list(OPS.values())
        aims = [find_target(name) for name in dict.fromkeys(targets)] or list(TARGETS.values())
    except ValueError as error:
        raise InputError(str(error)) from error
    with needed():
        by_target = {aim.name: [variant for op in chosen for variant in op.variants(aim)] for aim in aims}
    names = [[(variant.op, variant.name) for variant in variants] for variants in by_target.values()]
    assert all(one == names[0] and len(set(one)) == len(one) for one in names), "a variant has one name on all targets"
    return [(by_target[aim.name][index], aim) for index in range(len(names[0])) for aim in aims]


def _load(path: Path, version: str, *, must: bool) -> Budgets:
    try:
        budgets = load(path)
    except FileNotFoundError as error:
        if must:
            raise InputError(
                f"{path}: there are no budgets for Triton {version}; make them with staticfire kernels --update."
            ) from error
        return Budgets(short_version(version))
    except BudgetError as error:
        raise InputError(str(error)) from error
    if budgets.triton != short_version(version):
        raise InputError(f"{path}: holds budgets for Triton {budgets.triton}, installed is {version}.")
    return budgets


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
