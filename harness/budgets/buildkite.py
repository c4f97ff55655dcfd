"""`--format buildkite`: Markdown for `buildkite-agent annotate`, findings open and the table folded."""

from collections.abc import Iterator
from typing import Final

from staticfire.harness.budgets.report import Report, Row
from staticfire.harness.check.formats.buildkite import escape
from staticfire.harness.check.messages import one_line
from staticfire.kernels.budgets.judge import KINDS

NAME = "buildkite"
MAX_FINDINGS: Final = 200
"""An annotation takes one mebibyte; so many findings and the table stay far below."""


def render(report: Report) -> str:
    """The annotation."""
    return "\n".join([f"**{escape(report.last_line)}**", "", *_findings(report), *_table(report)]) + "\n"


def _findings(report: Report) -> Iterator[str]:
    for finding in report.findings[:MAX_FINDINGS]:
        title = f"{KINDS[finding.kind].code} {finding.kind}"
        yield f"- **{escape(title)}** <code>{escape(str(finding.key))}</code>: {escape(one_line(finding.message))}"
    if len(report.findings) > MAX_FINDINGS:
        yield f"- and {len(report.findings) - MAX_FINDINGS} more"
    yield ""


def _table(report: Report) -> Iterator[str]:
    yield "<details><summary>Kernels</summary>\n"
    yield "| kernel | target | registers | spills | stack | shared | code | 128-bit loads | tensor core | budget |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|---|---|"
    yield from (_line(row) for row in report.rows)
    yield "\n</details>"


def _line(row: Row) -> str:
    taken = row.made.resources
    numbers = ["-"] * 7
    if taken is not None:
        counts = (taken.registers, taken.spills, taken.stack_bytes, taken.shared_bytes, taken.code_bytes)
        numbers = [*map(str, counts), str(taken.wide_loads), taken.tensor_core or "none"]
    verdict = ", ".join(dict.fromkeys(finding.kind for finding in row.findings)) or "within"
    cells = [f"{row.key.op} {row.key.variant}", row.key.target, *numbers, verdict]
    return f"| {' | '.join(escape(cell) for cell in cells)} |"
