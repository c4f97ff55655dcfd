"""`--format sarif`: SARIF 2.1.0; a result is one finding, at the line where its kernel is defined."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from staticfire import __version__
from staticfire.harness.budgets.report import Report
from staticfire.kernels.budgets.file import Key
from staticfire.kernels.budgets.judge import KINDS, Finding
from staticfire.kernels.budgets.sources import where

NAME = "sarif"
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report) -> str:
    """The document, ending in a newline."""
    kernels = {row.key: row.made.variant.kernel for row in report.rows}
    used = [name for name in KINDS if any(finding.kind == name for finding in report.findings)]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "staticfire kernels",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(name) for name in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The folder the check was started in."}}},
        "properties": {"triton": report.triton, "summary": report.last_line},
        "results": [_result(finding, used, _place(finding.key, kernels, report)) for finding in report.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(name: str) -> dict[str, Any]:
    kind = KINDS[name]
    return {
        "id": kind.code,
        "name": "".join(part.capitalize() for part in f"kernel-{name}".split("-")),
        "shortDescription": {"text": kind.summary},
        "help": {"text": f"{kind.summary} If it is meant: staticfire kernels --update"},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["kernels", name], "precision": "very-high"},
    }


def _result(finding: Finding, used: list[str], place: tuple[Path, int]) -> dict[str, Any]:
    text = f"{finding.kind} {finding.key.op} {finding.key.variant} {finding.key.target}"
    return {
        "ruleId": KINDS[finding.kind].code,
        "ruleIndex": used.index(finding.kind),
        "level": "error",
        "message": {"text": f"{finding.key}: {finding.message}"},
        "locations": [_location(*place)],
        "partialFingerprints": {"staticfire/v1": hashlib.sha256(text.encode()).hexdigest()[:16]},
    }


def _place(key: Key, kernels: dict[Key, str], report: Report) -> tuple[Path, int]:
    """Where the kernel is defined; of a budget without a kernel, the file of budgets."""
    return where(kernels[key]) if key in kernels else (report.budgets, 1)


def _location(path: Path, line: int) -> dict[str, Any]:
    real, root = path.resolve(), Path.cwd().resolve()
    if real.is_relative_to(root):
        artifact = {"uri": quote(real.relative_to(root).as_posix()), "uriBaseId": "%SRCROOT%"}
    else:
        artifact = {"uri": real.as_uri()}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}
