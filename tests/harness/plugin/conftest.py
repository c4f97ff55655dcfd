import pytest

from run_pytest import Suite

MATRIX = """
[matrix]
name = "toy"
description = "Cells around the founding fault."

[fixed]
max_model_len = 64
max_num_seqs = 2

[axes]
model = ["jamba-tiny", "llama-tiny"]
enable_chunked_prefill = ["unset", false]
block_size = [16, 32]

[[constraint]]
when = { model = "jamba-tiny", enable_chunked_prefill = false }
reason = "no prompt may be cut where a state is kept"
kind = "unsupported"
rule = "SF101"

[cover]
strength = 3
"""


@pytest.fixture
def suite(tmp_path):
    made = Suite(tmp_path)
    made.write("toy.toml", MATRIX)
    return made
