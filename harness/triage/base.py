"""What triage reads and makes, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["product", "infrastructure"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that failed.

    Attributes:
        id: A cell, a test, or the file and line of a log.
        message: One line.
        text: The rest, shortened.
        report: The file that says so.
        line: In a log, where; 0 otherwise.
        cell: Whether it is the cell of a matrix.
        file: The test's file, where that is known.
        rule: Code of the rule, where the report names one.
        rerun: The command that runs just this.
    """

    id: str
    message: str
    text: str = ""
    report: str = ""
    line: int = 0
    cell: bool = False
    file: str = ""
    rule: str = ""
    rerun: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read of one report.

    Attributes:
        report: The file.
        cases: Test cases in it, skipped ones left out; 0 for a log.
        failures: What failed.
    """

    report: str
    cases: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """One root cause.

    Attributes:
        key: Equal for equal causes, in every build.
        kind: Whether the product is at fault, or a machine or a network.
        title: The engine's words, or the first failure's.
        failures: All that share it, in order.
        rule: `SF101 align-without-chunked-prefill`, where it is a broken rule.
        why: What the rule is about.
        repair: What mends it.
        verified: Whether the engine accepted that.
        sites: Other places that have the same cause, `path:line:column`.
        new: Whether the baseline lacks it; None without a baseline.
    """

    key: str
    kind: Kind
    title: str
    failures: tuple[Failure, ...]
    rule: str = ""
    why: str = ""
    repair: str = ""
    verified: bool = False
    sites: tuple[str, ...] = ()
    new: bool | None = None


@dataclass(frozen=True, slots=True)
class Triage:
    """Everything that triage has to say.

    Attributes:
        groups: Product first, then by number of failures.
        cases: Test cases that were read.
        reports: Files that were read.
        resolved: Keys of the baseline that are gone; empty without one.
    """

    groups: tuple[Group, ...]
    cases: int
    reports: int
    resolved: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        """How many things failed."""
        return sum(len(group.failures) for group in self.groups)

    @property
    def last_line(self) -> str:
        """One line that says it all."""
        of = f" of {self.cases}" if self.cases else ""
        if not self.groups:
            return f"no failure{of} in {plural(self.reports, 'report')}"
        product = sum(group.kind == "product" for group in self.groups)
        causes = [
            *([f"{plural(product, 'root cause')}"] if product else []),
            *(
                [f"{plural(len(self.groups) - product, 'cause')} of infrastructure"]
                if product < len(self.groups)
                else []
            ),
        ]
        return f"{plural(self.failures, 'failure')}{of}: {' and '.join(causes)}{self._new()}"

    def _new(self) -> str:
        known = [group.new for group in self.groups if group.new is not None]
        return f"; {sum(known)} new" if known else ""


def plural(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def retried(groups: Sequence[Group]) -> tuple[Failure, ...]:
    """What is worth trying again as it is: what a machine or a network broke."""
    return tuple(failure for group in groups if group.kind == "infrastructure" for failure in group.failures)
