import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.report import results_json
from staticfire.harness.run.identity import Identity
from staticfire.harness.run.plain import plain
from staticfire.harness.run.record import RunRecord
from staticfire.harness.run.result import VERDICTS, CellResult

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "results.json").read_text())
validate = jsonschema.Draft202012Validator(SCHEMA).validate


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == results_json.SCHEMA


def test_the_schema_knows_exactly_the_verdicts():
    assert SCHEMA["$defs"]["verdict"]["enum"] == list(VERDICTS)
    assert SCHEMA["properties"]["summary"]["required"] == list(VERDICTS)


def test_a_run_is_written_as_promised(record, failure):
    document = json.loads(results_json.render(record))
    validate(document)
    assert document["summary"] == {
        "passed": 1,
        "refused as expected": 1,
        "failed": 1,
        "error": 1,
        "refused unexpectedly": 1,
        "accepted unexpectedly": 1,
    }
    assert document["cells"][1] == {
        "id": "jamba-32",
        "axes": {"model": "jamba-tiny", "block_size": 32, "caching": True},
        "verdict": "failed",
        "seconds": 0.5,
        "detail": {"grade": "wrong", "failures": [failure]},
    }
    assert document["cells"][2]["rule"] == "SF101"
    assert "rule" not in document["cells"][0]
    assert document["matrix"] == {"name": "hybrid", "file": "matrices/hybrid.toml", "digest": "0123456789abcdef"}


def test_a_stopped_run_says_so(make_record, make_result):
    document = json.loads(results_json.render(make_record([make_result("a")], selected=3)))
    validate(document)
    assert (document["complete"], document["selected"]) == (False, 3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d["cells"][0].update(verdict="splendid"),
        lambda d: d["cells"][0].pop("axes"),
        lambda d: d["summary"].update(skipped=1),
        lambda d: d.update(schema=2),
        lambda d: d["cells"][0].update(seconds=-1),
    ],
)
def test_the_schema_refuses_what_is_wrong(record, damage):
    document = json.loads(results_json.render(record))
    damage(document)
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


VERSIONS = {"staticfire": "0", "python": "3"}
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
results = st.builds(
    CellResult,
    id=texts,
    axes=st.dictionaries(texts, texts | st.integers(-(2**53), 2**53) | st.booleans()),
    verdict=st.sampled_from(VERDICTS),
    seconds=st.floats(0, 1e6),
    rule=st.none() | texts,
    detail=st.none() | st.dictionaries(texts, st.floats() | texts, min_size=1).map(plain),
)


@given(st.lists(results, min_size=1, max_size=5))
def test_whatever_a_cell_is_called_the_file_is_valid(cells):
    identity = Identity(matrix="m", digest="d" * 16, job="j:j", content="c" * 64, versions=VERSIONS)
    record = RunRecord(
        file="m", identity=identity, started="2026-01-02T03:04:05+00:00", seconds=0, selected=5, axes=[], results=cells
    )
    document = json.loads(results_json.render(record))
    validate(document)
    assert [cell["id"] for cell in document["cells"]] == [cell.id for cell in cells]
    assert sum(document["summary"].values()) == len(cells)
