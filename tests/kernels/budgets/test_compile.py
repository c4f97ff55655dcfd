"""Compiling for GPUs that are not here, in processes of their own; this one has the interpreter on."""

import json
import os
import select
from dataclasses import replace

import pytest

from staticfire.kernels.budgets import compile as compiling
from staticfire.kernels.registry import OPS
from staticfire.kernels.targets import TARGETS

pytestmark = pytest.mark.engine


def variant(target="sm_90"):
    return next(one for one in OPS["silu_and_mul"].variants(TARGETS[target]) if one.name == "bf16")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "kernels"


def test_a_kernel_compiles_once_and_is_remembered(cache):
    wanted = [(variant(), TARGETS["sm_90"]), (variant("gfx942"), TARGETS["gfx942"])]
    told = []
    first = compiling.compile_all(wanted, cache, progress=lambda *counts: told.append(counts))
    assert told == [(1, 2), (2, 2)]
    assert [one.error for one in first] == [None, None]
    assert all(one.fresh for one in first)
    taken = [one.resources for one in first if one.resources is not None]
    assert [one.registers > 8 and one.code_bytes > 256 for one in taken] == [True, True]
    assert taken[0].wide_loads > 0
    again = compiling.compile_all(wanted, cache)
    assert [one.resources for one in again] == [one.resources for one in first]
    assert not any(one.fresh for one in again)


def test_a_spoilt_memory_is_compiled_again(cache):
    wanted = [(variant(), TARGETS["sm_90"])]
    compiling.compile_all(wanted, cache)
    (file,) = cache.iterdir()
    whole = json.loads(file.read_text())
    wrong = [[], {"registers": 1}, {**whole, "tensor_core": 3}, {**whole, "bounds": None}]
    for spoilt in ("", "[" * 100_000, *map(json.dumps, wrong)):
        file.write_text(spoilt)
        (one,) = compiling.compile_all(wanted, cache)
        assert one.fresh
        assert one.resources is not None


def test_faults_of_one_kernel_are_its_own_and_are_not_remembered(cache):
    good = variant()
    unknown = replace(good, signature={**good.signature, "colour": "i32"})
    broken = replace(good, constexprs={**good.constexprs, "BLOCK": 1000})
    target = TARGETS["sm_90"]
    outcomes = compiling.compile_all([(unknown, target), (broken, target), (good, target)], cache, processes=1)
    assert "the variant gives the arguments" in str(outcomes[0].error)
    assert "power of 2" in str(outcomes[1].error)
    assert outcomes[2].error is None
    assert len(list(cache.iterdir())) == 1


def test_a_compilation_that_takes_too_long_is_ended_and_the_next_goes_on(cache):
    good = variant()
    with compiling._children() as children:
        assert children.ask(compiling.job(good, TARGETS["sm_90"], 0.001)) == {"error": "not compiled after 0.001 s"}
        assert "resources" in children.ask(compiling.job(good, TARGETS["sm_90"]))


SLOW_CHILD = """
import json, pathlib, sys, time
job = json.loads(sys.stdin.readline())
if job["target"] == "sm_80":
    time.sleep(30)
    pathlib.Path(__file__).with_suffix(".done").touch()
print(json.dumps({"error": job["target"]}), flush=True)
"""


WAITING_CHILD = """
import pathlib, subprocess, sys
sys.stdin.readline()
assembler = subprocess.Popen(["sleep", "100"])
pathlib.Path(__file__).with_suffix(".pid").write_text(str(assembler.pid))
print('{"error": "started"}', flush=True)
assembler.wait()
"""


def test_an_interrupt_does_not_wait_for_what_is_being_compiled(tmp_path, monkeypatch, cache):
    (tmp_path / "slow_child.py").write_text(SLOW_CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(compiling, "_CHILD", "slow_child")
    monkeypatch.setattr(compiling, "key", lambda _, target: target.name)

    def interrupt(done, total):
        raise KeyboardInterrupt

    wanted = [(variant(), TARGETS["sm_90"]), (variant("sm_80"), TARGETS["sm_80"])]
    with pytest.raises(KeyboardInterrupt):
        compiling.compile_all(wanted, cache, progress=interrupt)
    assert not (tmp_path / "slow_child.done").exists()


def test_no_compilation_begins_after_the_end(monkeypatch, tmp_path):
    """Whoever was about to start a child, when the children were killed, would have made all wait for it."""
    (tmp_path / "slow_child.py").write_text(SLOW_CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(compiling, "_CHILD", "slow_child")
    with compiling._children() as children:
        children.kill()
        answer = children.ask(compiling.job(variant("sm_80"), TARGETS["sm_80"]))
    assert answer == {"error": "the compiler died (signal SIGKILL)"}


def test_what_a_child_waits_for_ends_with_it(monkeypatch, tmp_path):
    """An assembler is a process of its own: it held the pipe open, and wrote into a folder that was being removed."""
    (tmp_path / "waiting_child.py").write_text(WAITING_CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(compiling, "_CHILD", "waiting_child")
    with compiling._children() as children:
        assert children.ask({}) == {"error": "started"}
        assembler = int((tmp_path / "waiting_child.pid").read_text())
        pidfd = os.pidfd_open(assembler)
    try:
        ended, _, _ = select.select([pidfd], [], [], 60)
    finally:
        os.close(pidfd)
    assert ended


def test_what_cannot_be_remembered_leaves_nothing_behind(cache):
    target = TARGETS["sm_90"]
    place = cache / f"{compiling.key(variant(), target)}.json"
    (place / "in the way").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        compiling.compile_all([(variant(), target)], cache)
    assert list(cache.iterdir()) == [place]


def test_what_decides_the_result_is_in_the_key(monkeypatch):
    base = variant()
    keys = {compiling.key(base, TARGETS[name]) for name in TARGETS}
    keys.add(compiling.key(replace(base, num_warps=8), TARGETS["sm_90"]))
    keys.add(compiling.key(replace(base, num_stages=1), TARGETS["sm_90"]))
    keys.add(compiling.key(replace(base, constexprs={**base.constexprs, "BLOCK": 512}), TARGETS["sm_90"]))
    monkeypatch.setattr(compiling, "triton_version", lambda: "3.10.0")
    keys.add(compiling.key(base, TARGETS["sm_90"]))
    monkeypatch.setattr(compiling, "FP_FUSION", "0")
    keys.add(compiling.key(base, TARGETS["sm_90"]))
    assert len(keys) == len(TARGETS) + 5


def test_nobody_s_settings_of_triton_reach_the_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/nowhere")
    environment = compiling.child_environment(tmp_path)
    assert {name: value for name, value in environment.items() if name.startswith("TRITON_")} == {
        "TRITON_DEFAULT_FP_FUSION": "1",
        "TRITON_CACHE_DIR": str(tmp_path),
    }
    assert environment["TMPDIR"] == str(tmp_path), "a killed assembler's files go with the folder"
