"""`staticfire kernels`: exit codes, both directions of the budgets, the roofline, and what it says of bad input.

The acceptance tests plant faults in a copy of the sources and run the command on it as a user would.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from staticfire.harness.cli import main

pytestmark = pytest.mark.engine

ONE = ["--op", "silu_and_mul", "--target", "sm_90"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> list[str]:
    return ["--cache", str(tmp_path_factory.mktemp("cache"))]


def test_budgets_are_written_checked_and_kept(tmp_path, capsys, cache):
    budgets = tmp_path / "budgets.json"
    where = [*ONE, *cache, "--budgets", str(budgets)]
    assert main(["kernels", *where, "--check"]) == 2
    assert "there are no budgets for Triton" in capsys.readouterr().err
    assert main(["kernels", *where, "--update"]) == 0
    assert "2 budgets written, 0 dropped" in capsys.readouterr().out
    assert main(["kernels", *where, "--check"]) == 0
    assert "2 within budget" in capsys.readouterr().out.splitlines()[-1]
    data = json.loads(budgets.read_text())
    data["kernels"]["silu_and_mul"]["bf16"]["sm_90"]["registers"] = 8
    data["kernels"]["silu_and_mul"]["bf8"] = data["kernels"]["silu_and_mul"]["bf16"]
    budgets.write_text(json.dumps(data))
    assert main(["kernels", *where]) == 0, "without --check findings are only told"
    assert main(["kernels", *where, "--check"]) == 1
    out = capsys.readouterr().out
    assert "SK07 registers: silu_and_mul bf16 on sm_90: " in out
    assert "SK10 stale-budget: silu_and_mul bf8 on sm_90: " in out
    assert main(["kernels", *where, "--update"]) == 0
    assert "2 budgets written, 1 dropped" in capsys.readouterr().out
    assert main(["kernels", *where, "--check"]) == 0


def test_json_is_as_its_schema_says(capsys, cache, repo_root):
    assert main(["kernels", *ONE, *cache, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((repo_root / "docs" / "schemas" / "kernels.json").read_text()))
    assert {(one["op"], one["target"]) for one in document["kernels"]} == {("silu_and_mul", "sm_90")}


def test_the_floor_of_an_op(capsys, repo_root):
    shape = ["--op", "rms_norm", "--shape", "tokens=4096,hidden=8192", "--shape", "dtype=fp32"]
    assert main(["kernels", "--roofline", "h200-141gb", *shape, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((repo_root / "docs" / "schemas" / "roofline.json").read_text()))
    (op,) = document["ops"]
    assert op["floor_seconds"] == pytest.approx((2 * 4096 * 8192 + 8192) * 4 / 4.8e12)
    assert op["bound"] == "memory"
    assert main(["kernels", "--roofline", "h200-141gb", *shape]) == 0
    assert "55.93 us  memory" in capsys.readouterr().out


def test_ops_whose_shapes_are_not_given_are_named(capsys):
    assert main(["kernels", "--roofline", "b200", "--shape", "tokens=64,hidden=4096"]) == 0
    out = capsys.readouterr().out
    assert "\nrms_norm " in out
    assert "silu_and_mul (width)" in out.splitlines()[-1]


def test_products_are_held_to_the_peak_of_their_dtype(capsys):
    shape = "tokens=8192,inputs=8192,outputs=8192"
    assert main(["kernels", "--roofline", "h200-141gb", "--op", "int8_linear", "--shape", shape]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("int8_linear")]
    assert line.split()[-5:] == ["T", "bf16", "1.111", "ms", "compute"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--op", "rms_nom"], "did you mean 'rms_norm'?"),
        (["--target", "sm_91"], "did you mean 'sm_90'?"),
        (["--format", "xml"], "'xml' is not one of 'text', 'json', 'sarif', 'buildkite'"),
        (["--check", "--update"], "exclude each other"),
        (["--shape", "tokens=1"], "--shape is for --roofline"),
        (["--roofline", "h20-141gb", "--shape", "tokens=1"], "did you mean 'h200-141gb'?"),
        (["--roofline", "b200"], "give the shapes of an op, such as --op rms_norm --shape tokens=4096,hidden=4096"),
        (["--roofline", "b200", "--shape", "tokens"], "expected NAME=VALUE, such as tokens=4096, got 'tokens'"),
        (["--roofline", "b200", "--shape", "tokens=1,tokens=2"], "tokens is given twice"),
        (["--roofline", "b200", "--shape", "token=1"], "no op here has token. Did you mean 'tokens'?"),
        (["--roofline", "b200", "--shape", "tokens=0"], "tokens must be a whole number from 1 on, got '0'"),
        (["--roofline", "b200", "--shape", "tokens=1,hidden=1,dtype=bf17"], "unknown dtype 'bf17'"),
        (["--roofline", "b200", "--op", "rms_norm", "--shape", "tokens=1"], "rms_norm needs hidden"),
        (["--roofline", "h200", "--shape", "tokens=1"], "did you mean 'h200-141gb'?"),
        (["--op", "silu"], "did you mean 'silu_and_mul'?"),
        (["--roofline", "b200", "--target", "sm_90"], "--target, --budgets and --cache are for compiling"),
        (
            ["--roofline", "b200", "--op", "topk_softmax", "--shape", "tokens=1,experts=4,top_k=9"],
            "topk_softmax: top_k is at most experts, which is 4; got 9",
        ),
        (["--roofline", "b200", "--shape", "tokens=1,hidden=1", "--format", "sarif"], "printed as text or json"),
    ],
)
def test_bad_input_is_told_in_one_line(capsys, arguments, message):
    assert main(["kernels", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_broken_file_of_budgets_is_told(tmp_path, capsys, cache):
    budgets = tmp_path / "budgets.json"
    budgets.write_text("[]")
    assert main(["kernels", *ONE, *cache, "--budgets", str(budgets)]) == 2
    assert f"{budgets}: expected an object" in capsys.readouterr().err


def test_budgets_of_another_triton_are_told(tmp_path, capsys, cache):
    budgets = tmp_path / "budgets.json"
    budgets.write_text(json.dumps({"schema": 1, "triton": "2.1", "allowances": {}, "kernels": {}}))
    assert main(["kernels", *ONE, *cache, "--budgets", str(budgets)]) == 2
    assert "holds budgets for Triton 2.1, installed is" in capsys.readouterr().err


def test_any_thread_may_ask(cache):
    """Python lets none but the first one handle signals."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(main, ["kernels", *ONE, *cache]).result() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_is_being_compiled_and_leaves_nothing_behind(tmp_path, number):
    """The slow compiler stands for a long compilation, and would run for minutes; its folder is the process's own."""
    folder, ready = tmp_path / "folder", tmp_path / "ready"
    folder.mkdir()
    os.mkfifo(ready)
    (tmp_path / "slow_child.py").write_text(SLOW_CHILD)
    arguments = ["kernels", *ONE, "--cache", str(tmp_path / "cache"), "-j", "1"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(folder), "READY": str(ready)}
    told = os.open(ready, os.O_RDWR)
    started = [sys.executable, "-c", WITH_A_SLOW_CHILD, *arguments]
    with subprocess.Popen(started, env=environment, stderr=subprocess.PIPE) as command:
        try:
            assert select.select([told], [], [], 60)[0], "nothing is being compiled"
            child = os.pidfd_open(int(os.read(told, 20)))
            assert list(folder.iterdir()), "what is being compiled has a folder"
            command.send_signal(number)
            _, said = command.communicate(timeout=60)
            ended, _, _ = select.select([child], [], [], 60)
        finally:
            command.kill()
            os.close(told)
    os.close(child)
    assert (command.returncode, said) == (128 + number, b"")
    assert ended
    assert list(folder.iterdir()) == []


WITH_A_SLOW_CHILD = """
import signal, sys
from staticfire.harness.cli import main
from staticfire.kernels.budgets import compile
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, under which it is ignored, is inherited
compile._CHILD, compile.key = "slow_child", lambda *_: "any"
sys.exit(main(sys.argv[1:]))
"""
SLOW_CHILD = """
import os, pathlib, sys, time
sys.stdin.readline()
pathlib.Path(os.environ["READY"]).write_text(f"{os.getpid()}\\n")
time.sleep(600)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory, repo_root) -> Path:
    """A copy of our packages, to be spoilt and mended."""
    root: Path = tmp_path_factory.mktemp("copy")
    for folder in ("kernels", "engine", "harness", "matrices"):
        shutil.copytree(repo_root / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(repo_root / "src", root / "src", symlinks=True, ignore=shutil.ignore_patterns("*.egg-info"))
    return root


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "STATICFIRE_CACHE": str(copy / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "staticfire", "kernels", *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


FAULTS = {
    "a mask is gone": (
        "kernels/silu_and_mul/triton.py",
        "up = tl.load(x + row * x_row + (column + width) * x_column, mask=inside, other=0)",
        "up = tl.load(x + row * x_row + (column + width) * x_column)",
        ["--op", "silu_and_mul", "--target", "sm_90"],
        "SK08 mask: silu_and_mul bf16 on sm_90: 1 loads and stores of blocks without a mask, its budget is 0",
    ),
    "a bound is gone": (
        "kernels/rotary/triton.py",
        "inside = (head < heads) & (column < half)",
        "inside = (column < half) & (column < half)",
        ["--op", "rotary_embedding", "--target", "sm_90"],
        "SK08 mask: rotary_embedding bf16-d64 on sm_90: ",
    ),
    "a row is held by one warp": (
        "kernels/rms_norm/triton.py",
        "return min(8, max(1, block // 512))",
        "return 1",
        ["--op", "fused_add_rms_norm", "--target", "sm_90"],
        "SK02 stack: fused_add_rms_norm bf16-h8192 on sm_90: ",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(copy, fault):
    file, right, wrong, selection, finding = FAULTS[fault]
    path = copy / file
    sound = path.read_text(encoding="utf-8")
    assert right in sound
    path.write_text(sound.replace(right, wrong), encoding="utf-8")
    try:
        spoilt = run(copy, *selection, "--check")
    finally:
        path.write_text(sound, encoding="utf-8")
    assert spoilt.returncode == 1, spoilt.stderr
    assert finding in spoilt.stdout


@pytest.mark.slow
def test_a_tile_beyond_shared_memory_is_named_and_refused_unless_a_reason_is_given(copy):
    """Deeper pipelining of the same tiles: each stage has its own buffers."""
    path = copy / "kernels/paged_attention/variants.py"
    sound = path.read_text(encoding="utf-8")
    deeper = "\n\n_made = variants\n\n\ndef variants(target):\n    from dataclasses import replace\n\n"
    deeper += "    return [replace(one, num_stages=16) for one in _made(target) if one.name == 'bf16-d128-prefill']\n"
    path.write_text(sound + deeper, encoding="utf-8")
    selection = ["--op", "paged_attention", "--target", "sm_120"]
    budgets = copy / "kernels/budgets/triton-3.9.json"
    before = budgets.read_text(encoding="utf-8")
    try:
        spoilt = run(copy, *selection, "--check")
        assert spoilt.returncode == 1, spoilt.stderr
        found = [line.split() for line in spoilt.stdout.splitlines() if "SK04 shared: paged_attention" in line]
        assert found
        assert found[0][-5:] == ["memory,", "the", "device", "has", "101376"]
        refused = run(copy, *selection, "--update")
        assert refused.returncode == 1
        assert "not updated:" in refused.stdout
        assert budgets.read_text(encoding="utf-8") == before
        data = json.loads(before)
        for words in found:
            reason = {"reason": "not launched there", "shared_bytes": int(words[6])}
            data["allowances"].setdefault("paged_attention", {}).setdefault(words[3], {})["sm_120"] = reason
        budgets.write_text(json.dumps(data), encoding="utf-8")
        allowed = run(copy, *selection, "--update")
        assert allowed.returncode == 0, allowed.stdout
        assert json.loads(budgets.read_text(encoding="utf-8"))["allowances"] == data["allowances"]
        assert run(copy, *selection, "--check").returncode == 0
    finally:
        path.write_text(sound, encoding="utf-8")
        budgets.write_text(before, encoding="utf-8")
