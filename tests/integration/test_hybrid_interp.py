"""`staticfire run hybrid-interp --kernel-backend triton`: the tokens of transformers, and of the PyTorch kernels."""

import json

import pytest

from staticfire.harness.cli import main

pytestmark = [pytest.mark.engine, pytest.mark.interp, pytest.mark.nightly]


def test_every_cell_passes_on_interpreted_kernels(tmp_path, capsys):
    code = main(["run", "hybrid-interp", "--kernel-backend", "triton", "--timeout", "1800", "--out", str(tmp_path)])
    assert code == 0, capsys.readouterr().out
    cells = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert 1 <= len(cells) <= 6
    for cell in cells:
        assert cell["verdict"] == "passed"
        # Two prompts, and both again where a second run finds their beginning.
        asked = 4 if "prefix-hit" in cell["detail"]["conditions"] else 2
        # The canonical cell of each group computes with PyTorch.
        assert cell["detail"]["canonical"]["prompts"] == cell["detail"]["transformers"]["prompts"] == asked
