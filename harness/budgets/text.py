"""`--format text`: a table with a line a kernel and target, the findings, and the outcome."""

from collections.abc import Iterator

from staticfire.harness.budgets.report import Report, Row
from staticfire.harness.check.messages import one_line

NAME = "text"

_HEAD = ("target", "regs", "spills", "stack", "shared", "of", "warps", "stages", "code", "128-bit", "tensor core")


def render(report: Report) -> str:
    """The text, ending in a newline."""
    return "\n".join([*_table(report), *_findings(report), report.last_line, ""])


def _table(report: Report) -> Iterator[str]:
    title = ""
    for row in report.rows:
        now = f"{row.key.op} {row.key.variant}"
        if now != title:
            yield from ([""] if title else [])
            yield f"{now:44}{_cells(_HEAD)}  budget"
            title = now
        verdict = ", ".join(dict.fromkeys(finding.kind for finding in row.findings)) or "within"
        yield f"{'':44}{_cells(_values(row))}  {verdict}"
    yield ""


def _cells(values: tuple[str, ...]) -> str:
    target, registers, spills, stack, shared, limit, warps, stages, code, wide, tensor = values
    return (
        f"{target:8}{registers:>5}{spills:>7}{stack:>6}{shared:>8}{limit:>8}{warps:>6}{stages:>7}{code:>8}{wide:>8}  "
        f"{tensor:16}"
    )


def _values(row: Row) -> tuple[str, ...]:
    made, taken = row.made, row.made.resources
    launch = (str(made.variant.num_warps), str(made.num_stages))
    if taken is None:
        return (row.key.target, *("-",) * 4, str(made.target.shared_limit), *launch, "-", "-", "-")
    spills = f"{taken.spills}+{taken.scalar_spills}" if made.target.amd else str(taken.spills)
    return (
        row.key.target,
        str(taken.registers),
        spills,
        str(taken.stack_bytes),
        str(taken.shared_bytes),
        str(made.target.shared_limit),
        *launch,
        str(taken.code_bytes),
        str(taken.wide_loads),
        taken.tensor_core or "none",
    )


def _findings(report: Report) -> Iterator[str]:
    if report.findings:
        yield f"{len(report.findings)} finding{'' if len(report.findings) == 1 else 's'}:"
        yield from (f"  {one_line(str(finding))}" for finding in report.findings)
        yield ""
