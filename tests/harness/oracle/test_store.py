import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from staticfire.harness.oracle import store as module
from staticfire.harness.oracle.base import OracleError
from staticfire.harness.oracle.store import Store, checkpoint_digest, code_digest, digest

pytestmark = pytest.mark.engine

VALUES = {"noise": [1e-5, 0.1], "text": "é"}
ARRAYS = {
    "rows": np.arange(6, dtype=np.float32).reshape(2, 3),
    "wide": np.array([[1e-300]]),
    "routing": np.zeros((0, 4, 0), np.int16),
    "transposed": np.arange(6).reshape(2, 3).T,
}


def same(answer):
    values, arrays = answer
    assert values == VALUES
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_an_answer_comes_back_from_memory_and_from_another_process(tmp_path):
    first = Store(tmp_path)
    assert first.get("g", "k") is None
    first.put("g", "k", VALUES, ARRAYS)
    same(first.get("g", "k"))
    same(Store(tmp_path).get("g", "k"))
    assert Store(tmp_path).get("g", "other") is None
    assert Store(tmp_path).get("other", "k") is None


@pytest.mark.parametrize("damage", ["empty", "truncated", "text"])
def test_a_damaged_file_is_no_answer_and_is_replaced(tmp_path, damage):
    Store(tmp_path).put("g", "k", VALUES, ARRAYS)
    (path,) = tmp_path.rglob("*.safetensors")
    whole = path.read_bytes()
    path.write_bytes({"empty": b"", "truncated": whole[: len(whole) // 2], "text": b"not safetensors at all"}[damage])
    again = Store(tmp_path)
    assert again.get("g", "k") is None
    again.put("g", "k", VALUES, ARRAYS)
    same(Store(tmp_path).get("g", "k"))


def test_nothing_half_written_stays_behind_when_writing_fails(tmp_path, monkeypatch):
    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OracleError, match=f"{tmp_path}: cannot keep an oracle answer: No space left"):
        Store(tmp_path).put("g", "k", VALUES, ARRAYS)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_nobody_has_used_for_a_month_is_pruned(tmp_path):
    kept = Store(tmp_path)
    for group in ("used", "forgotten", "new"):
        kept.put(group, "k", VALUES, ARRAYS)
    long_ago = time.time() - 31 * 86400
    for group in ("used", "forgotten"):
        os.utime(tmp_path / group, (long_ago, long_ago))
    kept.use("used")
    kept.use("never made")
    kept.prune()
    assert {path.name for path in tmp_path.iterdir()} == {"used", "new"}


def test_memory_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "KEPT_IN_MEMORY", 2)
    kept = Store(tmp_path)
    for key in "abc":
        kept.put("g", key, {"key": key}, {})
    for path in tmp_path.rglob("*.safetensors"):
        path.unlink()
    assert [kept.get("g", key) is not None for key in "abc"] == [False, True, True]


COMPUTE_ONCE = """
import sys, time
from pathlib import Path
from staticfire.harness.oracle.store import Store

kept = Store(Path(sys.argv[1]))
with kept.lock("g"):
    if kept.get("g", "k") is None:
        time.sleep(0.2)  # wide enough for the other to come between, were there no lock
        print("computed")
        kept.put("g", "k", {}, {})
"""


def test_two_processes_compute_an_answer_once(tmp_path):
    command = [sys.executable, "-c", COMPUTE_ONCE, str(tmp_path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [worker.communicate(timeout=120)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sorted(said) == ["", "computed\n"]


def test_a_digest_tells_its_parts_apart():
    different = [digest("a", "b"), digest("ab"), digest("a", ("b",)), digest("a", 1), digest("a", "1"), digest()]
    assert len(set(different)) == len(different)
    assert digest({"x": 1, "y": 2}) == digest({"y": 2, "x": 1})


def test_a_checkpoint_is_known_by_its_content_wherever_it_lies(tmp_path):
    folders = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"a": 1}))
        (folder / "model.safetensors").write_bytes(b"weights")
        folders.append(folder)
    (folders[1] / "README.md").write_text("not part of the model")
    assert checkpoint_digest(folders[0]) == checkpoint_digest(folders[1])
    before = checkpoint_digest(folders[0])
    (folders[0] / "model.safetensors").write_bytes(b"weightz")
    assert checkpoint_digest(folders[0]) != before
    (folders[1] / "config.json").write_text(json.dumps({"a": 2}))
    assert checkpoint_digest(folders[1]) != before


def test_an_edited_source_is_other_code(tmp_path):
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    before = code_digest((tmp_path,))
    source.write_text("x = -1\n")
    assert code_digest((tmp_path,)) != before
