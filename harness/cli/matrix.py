"""`staticfire matrix FILE`: the cells of a matrix, their verdicts, what they cover, and whether the engine agrees."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from staticfire.harness.cli.streams import echo, echo_json
from staticfire.harness.matrix.workload import Workload

if TYPE_CHECKING:
    from staticfire.harness.matrix import Matrix
    from staticfire.harness.matrix.cell import Cell
    from staticfire.harness.matrix.compare import Finding
    from staticfire.harness.matrix.verify import Coverage
    from staticfire.harness.probe.base import Probe

SCHEMA = 1
_TUPLES = {1: "values", 2: "pairs", 3: "triples"}


def _condition(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> list[tuple[str, str]]:
    conditions = []
    for text in texts:
        axis, equals, value = text.partition("=")
        if not (axis and equals and value):
            raise click.BadParameter(f"expected AXIS=VALUE, such as block_size=32, got {text!r}")
        conditions.append((axis.strip(), value.strip()))
    return conditions


@click.command()
@click.argument("file")
@click.option(
    "--select",
    multiple=True,
    callback=_condition,
    metavar="AXIS=VALUE",
    help="Only cells with this value; may be repeated.",
)
@click.option("--every", is_flag=True, help="Ask the engine about every combination, not only about the cells.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "ids"]),
    default="text",
    show_default=True,
    help="How to print.",
)
def matrix(file: str, select: list[tuple[str, str]], every: bool, output: str) -> int:
    """List the cells of the matrix FILE with their verdicts.

    FILE is a path, or the name of a matrix that ships with the project. Each cell's verdict is compared with the
    engine's own answer; a disagreement is a finding.

    Exit codes: 0 the engine agrees, 1 findings, 2 the file or a selection cannot be used.
    """
    from staticfire.harness.matrix import load
    from staticfire.harness.matrix.compare import compare, every_combination
    from staticfire.harness.matrix.verify import verify
    from staticfire.harness.probe.reference import ReferenceProbe

    probe = ReferenceProbe()
    loaded = load(file, probe)
    cells = loaded.select(select) if select else loaded.cells()
    coverage = verify(loaded.document, [cell.axes for cell in loaded.cells() if cell.verdict == "valid"])
    assert coverage.complete, f"{loaded.document.where}: the generated cells do not cover {coverage.missing[:3]}"
    findings = compare(every_combination(loaded.document) if every else cells, probe)
    if output == "json":
        echo_json(json.dumps(_document(loaded, cells, coverage, findings), indent=2))
    elif output == "ids":
        echo("\n".join(cell.id for cell in cells))
    else:
        echo("\n".join(_text(loaded, cells, coverage, findings, probe)))
    return 1 if findings else 0


def _document(
    loaded: "Matrix", cells: Sequence["Cell"], coverage: "Coverage", findings: Sequence["Finding"]
) -> dict[str, Any]:
    """The machine-readable form; docs/schemas/matrix.json describes it."""
    counts = Counter(cell.verdict for cell in cells)
    return {
        "schema": SCHEMA,
        "matrix": loaded.name,
        "digest": loaded.digest,
        "fixed": dict(loaded.document.fixed),
        "cells": [
            {
                "id": cell.id,
                "axes": dict(cell.axes),
                "verdict": cell.verdict,
                "rules": list(cell.rules),
                **({"reason": cell.reason} if cell.reason else {}),
            }
            for cell in cells
        ],
        "summary": {
            "cells": len(cells),
            "valid": counts["valid"],
            "refused": counts["refused"],
            "combinations": {
                "covered": [
                    {"strength": strength, "feasible": feasible, "covered": covered}
                    for strength, (feasible, covered) in sorted(coverage.by_strength.items())
                ],
                "infeasible": [
                    {
                        "axes": {axis: key[1] for axis, key in combination},
                        "reasons": [constraint.reason for constraint in constraints],
                    }
                    for combination, constraints in coverage.infeasible
                ],
            },
        },
        "findings": [
            {"id": f.id, "declared": f.declared, "answered": f.answered, "message": f.message} for f in findings
        ],
    }


def _text(
    loaded: "Matrix",
    cells: Sequence["Cell"],
    coverage: "Coverage",
    findings: Sequence["Finding"],
    probe: "Probe",
) -> list[str]:
    document, asked = loaded.document, loaded.document.workload
    lines = [f"{document.name}: {document.description}"]
    if document.fixed:
        lines.append("in every cell: " + ", ".join(f"{name}={value}" for name, value in document.fixed.items()))
    if asked != Workload():
        looked = ", ".join(asked.relations) or "none"
        lines.append(f"every cell is asked: prompts {asked.prompts}, {asked.max_tokens} tokens; relations: {looked}")
    lines.append("")
    width = max(len(cell.id) for cell in cells)
    for cell in cells:
        if cell.verdict == "valid":
            lines.append(f"valid    {cell.id}")
        else:
            rules = ", ".join(f"{code} {probe.rule_name(code)}" for code in cell.rules)
            lines.append(f"refused  {cell.id:{width}}  {rules}: {cell.reason}")
    lines += ["", *_summary(cells, coverage, findings)]
    return lines


def _summary(cells: Sequence["Cell"], coverage: "Coverage", findings: Sequence["Finding"]) -> list[str]:
    counts = Counter(cell.verdict for cell in cells)
    codes = Counter(code for cell in cells for code in cell.rules)
    by_rule = f" ({', '.join(f'{code} {count}' for code, count in sorted(codes.items()))})" if codes else ""
    covered = " and ".join(
        f"{done} of {feasible} feasible {_TUPLES.get(strength, f'{strength}-tuples')}"
        for strength, (feasible, done) in sorted(coverage.by_strength.items())
    )
    lines = [
        f"{len(cells)} cells: {counts['valid']} valid, {counts['refused']} refused{by_rule}",
        f"covered: {covered}; {len(coverage.infeasible)} combinations that no valid cell can have",
    ]
    if not findings:
        return [*lines, "the engine agrees"]
    return [*lines, f"{len(findings)} findings:", *(f"  {finding.id}: {finding.message}" for finding in findings)]
