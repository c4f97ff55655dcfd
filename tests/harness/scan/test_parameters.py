"""Parameter ids, as pytest itself makes them."""

import subprocess
import sys
from pathlib import Path

from staticfire.harness.scan.scan import scan

SUITE = """
import enum
import pytest
LLM = dict
class Mode(enum.Enum):
    A = 1
class Thing:
    pass
def named(): ...
LISTED = ["one", "two", "two"]

@pytest.fixture(params=["p", "q"])
def made(request):
    return request.param

@pytest.mark.parametrize("a", [1, 2.5, None, True, "x y", Mode.A, Thing, named, {"k": 1}, [1], (1, 2), Thing()])
@pytest.mark.parametrize("b", LISTED)
@pytest.mark.parametrize(("c", "d"), [(1, "z"), pytest.param(2, {"k": 1}, id="given"), (3, None)])
def test_many(a, b, c, d):
    LLM(model="m", seed=a, dtype=b, max_num_seqs=c, tokenizer=d)

@pytest.mark.parametrize("a", [1, 1, 10], ids=["n", None, "n"])
@pytest.mark.parametrize("b", [4, 5], ids=str)
@pytest.mark.parametrize("c", [4, 5], ids=lambda value: f"c{value}")
def test_ids(a, b, c):
    LLM(model="m", seed=a, dtype=b, max_num_seqs=c)

@pytest.mark.parametrize("a", ["1", "1"])
def test_fixture(made, a):
    LLM(model=made, tokenizer=a)

@pytest.mark.parametrize("a", [3])
class TestClass:
    @pytest.mark.parametrize("b", ["y"])
    def test_method(self, a, b):
        LLM(model="m", seed=a, dtype=b)
"""


def test_ids_are_those_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    collected = [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    found = [
        f"{site.function.rpartition('.')[2]}[{item.params}]"
        for site in scan([tmp_path]).sites
        for item in site.configurations
    ]
    assert len(collected) == 12 * 3 * 3 + 3 * 2 * 2 + 2 * 2 + 1
    assert sorted(found) == sorted(collected)
