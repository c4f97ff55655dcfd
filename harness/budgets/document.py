"""`--format json`: everything; docs/schemas/kernels.json describes it."""

import json
from typing import Any

from staticfire.harness.budgets.report import Report, Row
from staticfire.kernels.budgets.judge import KINDS, Finding
from staticfire.kernels.budgets.resources import Resources
from staticfire.kernels.targets import FP_FUSION

NAME = "json"
SCHEMA = 1
_NONE = dict.fromkeys(Resources.__dataclass_fields__)


def render(report: Report) -> str:
    """The document, ending in a newline."""
    document = {
        "schema": SCHEMA,
        "triton": report.triton,
        "fp_fusion": FP_FUSION == "1",
        "budgets": str(report.budgets),
        "kernels": [_row(row) for row in report.rows],
        "findings": [_finding(finding) for finding in report.findings],
        "summary": {
            "kernels": len(report.rows),
            "compiled": sum(row.made.fresh for row in report.rows),
            "within_budget": sum(not row.findings for row in report.rows),
            "findings": len(report.findings),
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _row(row: Row) -> dict[str, Any]:
    made = row.made
    taken = _NONE if made.resources is None else made.resources.as_json()
    instructions = taken["tensor_core"]
    return {
        "op": row.key.op,
        "variant": row.key.variant,
        "target": row.key.target,
        "kernel": made.variant.kernel,
        "num_warps": made.variant.num_warps,
        "num_stages": made.num_stages,
        **taken,
        "tensor_core": None if made.resources is None else instructions is not None,
        "tensor_core_instructions": instructions.split(", ") if instructions else [],
        "shared_limit": made.target.shared_limit,
        "within_budget": not row.findings,
        "error": made.error,
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "code": KINDS[finding.kind].code,
        "kind": finding.kind,
        "op": finding.key.op,
        "variant": finding.key.variant,
        "target": finding.key.target,
        "message": finding.message,
    }
