"""The job of `staticfire run`: the reference engine, judged by its oracles.

Imported in workers only: it brings torch and transformers with it.
"""

from pathlib import Path

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.oracle.judge import judge
from staticfire.harness.run.job import JobContext, JobResult


def judge_cell(cell: Cell, context: JobContext) -> JobResult:
    """Run one cell and compare it with its oracles."""
    cache_dir = Path(context.cache_dir) if context.cache_dir else None
    judgement = judge(cell, cache_dir=cache_dir, matrix_file=context.matrix_file)
    detail = dict(judgement.detail)
    if judgement.grade is not None:
        detail = {"grade": judgement.grade, **detail}
    return JobResult(verdict=judgement.verdict, rule=judgement.rule, detail=detail or None)
