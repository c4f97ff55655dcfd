"""The matrix that ships with the project, against the engine's own answers."""

import os
import re
import subprocess
import sys
from collections import defaultdict

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.matrix import load, names
from staticfire.harness.matrix.compare import compare, every_combination
from staticfire.harness.matrix.verify import verify
from staticfire.harness.models import catalog
from staticfire.harness.probe.base import Rejected
from staticfire.harness.probe.reference import ReferenceProbe


@pytest.fixture(scope="module")
def hybrid():
    return load("hybrid")


class Remembering:
    """The engine's probe, asked once for each configuration: two tests ask it for tens of thousands."""

    def __init__(self):
        self._real = ReferenceProbe()
        self._answers = {}

    def ask(self, model, typed):
        key = (model, *typed.items())
        if key not in self._answers:
            self._answers[key] = self._real.ask(model, typed)
        return self._answers[key]

    def __getattr__(self, name):
        return getattr(self._real, name)


@pytest.fixture(scope="module")
def probe():
    return Remembering()


def test_it_is_of_a_size_that_can_be_run(hybrid):
    assert 60 <= len(hybrid.cells()) <= 200


def test_ids_are_unique_and_plain(hybrid):
    ids = [cell.id for cell in hybrid.cells()]
    assert len(set(ids)) == len(ids)
    assert all(cell_id.replace("-", "").replace(".", "").isalnum() for cell_id in ids)
    assert all(cell_id.startswith(cell.model) for cell_id, cell in zip(ids, hybrid.cells(), strict=True))


def test_the_valid_cells_cover_it(hybrid):
    coverage = verify(hybrid.document, [cell.axes for cell in hybrid.cells() if cell.verdict == "valid"])
    assert coverage.complete
    assert set(coverage.by_strength) >= {2, 4}


def test_the_engine_agrees_on_every_combination(hybrid, probe):
    """Not on the cells alone: on each of the thousands of rows that mean something, rule by rule."""
    findings = compare(every_combination(hybrid.document), probe)
    assert findings == (), findings[0].message


def test_every_rule_that_its_axes_can_break_alone_has_a_cell(hybrid, probe):
    alone = set()
    for cell in every_combination(hybrid.document):
        answer = probe.ask(cell.model, cell.config)
        if isinstance(answer, Rejected) and len(answer.rules) == 1:
            alone.add(answer.rules)
    assert alone == {cell.rules for cell in hybrid.cells() if cell.verdict == "refused"}
    assert ("SF101",) in alone


def test_every_group_that_must_agree_is_cut_in_several_ways(hybrid):
    groups = defaultdict(list)
    for cell in hybrid.cells():
        if cell.verdict == "valid":
            groups[cell.group].append(cell)
    dtypes = {"float32", "bfloat16", "float64"}
    assert set(groups) == {
        *(
            (model, dtype, q)
            for model in ("jamba-tiny", "jamba-tiny-grow")
            for dtype in dtypes
            for q in ("unset", "experts_int8")
        ),
        *(("llama-tiny", dtype, "unset") for dtype in dtypes),
    }
    for cells in groups.values():
        assert {cell.axes["block_size"] for cell in cells} == {16, 32, 64}
        assert {cell.axes["enable_prefix_caching"] for cell in cells} == {"unset", True, False}


def layout(cell):
    parts = {"enable_multiprocessing": "separate", "tensor_parallel_size": "tp2", "data_parallel_size": "dp2"}
    return frozenset(name for axis, name in parts.items() if cell.axes[axis] != "unset")


def test_every_layout_of_processes_meets_every_model_and_the_exact_dtype_without_ruling_the_run(hybrid):
    valid = [cell for cell in hybrid.cells() if cell.verdict == "valid"]
    apart = [cell for cell in valid if layout(cell)]
    for name in ("separate", "tp2", "dp2"):
        met = [cell for cell in apart if name in layout(cell)]
        assert {cell.model for cell in met} == {"jamba-tiny", "jamba-tiny-grow", "llama-tiny"}
        assert {cell.axes["dtype"] for cell in met} >= {"float32", "float64"}  # laws 3 and 1
    assert any(layout(cell) == {"tp2", "dp2"} for cell in apart)
    assert len(apart) <= len(valid) / 3


def test_its_models_can_be_made(hybrid):
    assert all(catalog.load(str(model)).tiny for model in hybrid.document.axes["model"])


def test_it_is_found_by_name_and_by_path(hybrid, repo_root):
    assert names() == ("hybrid", "hybrid-interp")
    for given in ("hybrid", "hybrid.toml", repo_root / "matrices" / "hybrid.toml"):
        assert load(given).digest == hybrid.digest


def test_an_unknown_matrix_gives_the_nearest():
    with pytest.raises(InputError, match=r"No matrix 'hybird\.toml'.*Did you mean 'hybrid'\?"):
        load("hybird.toml")


def test_devices_are_no_matrix():
    with pytest.raises(InputError, match="No matrix 'devices'"):
        load("devices")


def test_typos_in_keywords_and_values_are_the_engines_word(tmp_path, repo_root):
    text = (repo_root / "matrices" / "hybrid.toml").read_text(encoding="utf-8")
    path = tmp_path / "m.toml"
    path.write_text(
        text.replace('"bfloat16", "float64"', '"bflot16", "float64"').replace("max_num_seqs", "max_num_seq")
    )
    with pytest.raises(InputError) as caught:
        load(path)
    assert "did you mean 'bfloat16'" in str(caught.value)
    assert "did you mean 'max_num_seqs'" in str(caught.value)


def test_cells_depend_on_neither_the_hash_seed_nor_the_order_of_the_file(hybrid, tmp_path, repo_root):
    text = (repo_root / "matrices" / "hybrid.toml").read_text(encoding="utf-8")
    head, *tables = re.split(r"(?m)^(?=\[)", text)
    axes = next(table for table in tables if table.startswith("[axes]"))
    lines = [line for line in axes.splitlines()[1:] if "=" in line]
    reversed_axes = "\n".join(
        ["[axes]", *(re.sub(r"\[(.*?)\]", _reversed, line, count=1) for line in reversed(lines)), ""]
    )
    path = tmp_path / "reversed.toml"
    path.write_text(head + "".join(reversed_axes if t is axes else t for t in reversed(tables)), encoding="utf-8")
    ids = set()
    for file, hash_seed in ((repo_root / "matrices" / "hybrid.toml", "1"), (path, "2")):
        code = f"from staticfire.harness.cli import main; main(['matrix', {str(file)!r}, '--format', 'ids'])"
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        ids.add(tuple(sorted(done.stdout.split())))
    assert ids == {tuple(sorted(cell.id for cell in hybrid.cells()))}


def _reversed(match):
    return "[" + ", ".join(reversed([value.strip() for value in match[1].split(",")])) + "]"
