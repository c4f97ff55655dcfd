"""The real judge over an engine whose selective scan has one sign wrong: y = C h - D u instead of C h + D u."""

from typing import Any

from staticfire.engine.layers import mamba1
from staticfire.harness.run import judged

LAYER: Any = mamba1
SCAN, UPDATE = LAYER.selective_scan_varlen, LAYER.selective_state_update


def judge_cell(cell, context):
    """Judge a cell with the broken engine."""
    return judged.judge_cell(cell, context)


def scan(u: Any, delta: Any, A: Any, B: Any, C: Any, D: Any, *rest: Any, **options: Any) -> Any:
    """The scan, with the sign wrong."""
    return SCAN(u, delta, A, B, C, -D, *rest, **options)


def update(state: Any, u: Any, delta: Any, A: Any, B: Any, C: Any, D: Any, *rest: Any, **options: Any) -> Any:
    """Its single step, with the sign wrong."""
    return UPDATE(state, u, delta, A, B, C, -D, *rest, **options)


LAYER.selective_scan_varlen = scan
LAYER.selective_state_update = update
