"""The benchmark: every op has a line, a wrong path gets no number, and what is said of a GPU follows from the times."""

import importlib
import os
import subprocess
import sys
import warnings

import pytest
import torch

from staticfire.kernels.bench import __main__ as bench
from staticfire.kernels.bench import measure
from staticfire.kernels.bench.case import Rival
from staticfire.kernels.bench.clock import Reached, reached
from staticfire.kernels.bench.scale import tiny
from staticfire.kernels.registry import OPS
from staticfire.kernels.roofline import CEILINGS
from staticfire.kernels.variant import Cost

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def cases():
    return {case.op: case for case in bench.cases(tiny())}


def ticking(call):
    """A clock of 50 microseconds a call."""
    call()
    return 50.0


def doubled(case):
    """The case with a Triton backend that is the PyTorch one, for there is no GPU here."""
    return case._replace(call=lambda backend: case.call("torch" if backend == "triton" else backend))


def test_every_op_has_a_line(cases):
    assert set(cases) == set(OPS)


def test_every_op_costs_something(cases):
    assert all(case.cost.read > 0 and case.cost.written > 0 for case in cases.values())


def test_a_wrong_path_gets_no_number(cases):
    case = cases["rms_norm"]
    wrong = case._replace(call=lambda backend: case.call(backend) * (2 if backend == "torch" else 1))
    with pytest.raises(AssertionError, match="rms_norm: max error"):
        measure.on_cpu(wrong)
    wrong = case._replace(call=lambda backend: case.call("torch") * (2 if backend == "triton" else 1))
    with pytest.raises(AssertionError, match="rms_norm: max error"):
        measure.on_gpu(wrong, torch.float32, ticking)


def test_a_kernel_is_compared_after_its_state_was_put_back(cases):
    took = measure.on_gpu(doubled(cases["selective_state_update"]), torch.float32, ticking)
    assert (took.triton, took.torch) == (50.0, 50.0)


def test_rivals_are_timed_compared_and_told_about(cases):
    case = doubled(cases["rms_norm"])

    def missing():
        raise ModuleNotFoundError("no fla")

    def unfit():
        raise AttributeError("no such function")

    def failing():
        def call():
            raise TypeError("other arguments")

        return call

    rivals = (
        Rival("same", lambda: lambda: case.call("torch")),
        Rival("other", lambda: lambda: case.call("torch") + 1),
        Rival("missing", missing),
        Rival("unfit", unfit),
        Rival("failing", failing),
    )
    took = measure.on_gpu(case._replace(rivals=rivals), torch.float32, ticking)
    assert took.rivals == {
        "same": 50.0,
        "other": "gives other numbers",
        "unfit": "cannot be made: AttributeError",
        "failing": "fails: TypeError",
    }


def test_rivals_that_are_not_installed_leave_no_trace(cases, monkeypatch):
    for module in ("fla.modules.norm.layernorm", "vllm", "vllm._custom_ops"):
        monkeypatch.setitem(sys.modules, module, None)
    case = doubled(cases["rms_norm"])
    assert [rival.name for rival in case.rivals] == ["fla", "vllm"]
    assert measure.on_gpu(case, torch.float32, ticking).rivals == {}


def test_a_rival_that_is_installed_is_found_where_its_release_has_it(cases):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fla warns that there is no GPU
        importlib.import_module("fla")
        rival = cases["rms_norm"].rivals[0]
        assert (rival.name, callable(rival.make())) == ("fla", True)


def test_what_is_achieved_is_held_to_what_bounds_the_op():
    device = Reached(bandwidth=2e12, products={"bf16": 5e14})
    moved = Cost(read=10**8, written=10**8, operations=10**9)
    assert measure.achieved(moved, 200.0, device).split() == ["1000", "GB/s", "50%", "of", "a", "copy"]
    multiplied = Cost(read=10**6, written=10**6, operations=10**11, unit="bf16")
    assert measure.achieved(multiplied, 400.0, device).split() == ["250.0", "Top/s", "50%", "of", "a", "product"]
    assert measure.on_paper(moved, CEILINGS["h200-141gb"]) == f"{2e8 / 4.8e12 * 1e6:.1f}"
    assert measure.on_paper(moved, None) == "-"


def test_a_device_is_measured_by_a_copy_and_by_products():
    device = reached(torch.device("cpu"), ticking, elements=1000, side=4)
    assert device.bandwidth == pytest.approx(2000 / 50e-6)
    assert device.products == pytest.approx(dict.fromkeys(("bf16", "fp16", "fp32"), 128 / 50e-6))


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA H200", "h200-141gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA L40S", None),
        ("NVIDIA L4", "l4"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("NVIDIA GeForce RTX 5090", None),
    ],
)
def test_a_device_is_known_by_what_its_driver_calls_it(name, device):
    found = bench.ceilings_of(name)
    assert (found.device if found else None) == device


def test_the_table_of_a_gpu_says_what_was_reached(monkeypatch, cases):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device: "NVIDIA H200")
    monkeypatch.setattr(bench, "reached", lambda _device, _clock: Reached(4e12, {"bf16": 7e14}))
    monkeypatch.setattr(bench, "gpu_microseconds", lambda call, _device: ticking(call))
    monkeypatch.setattr(bench, "real", lambda _device: tiny())
    rival = Rival("fla", lambda: lambda: cases["rms_norm"].call("torch"))
    monkeypatch.setattr(bench, "cases", lambda _scale: [doubled(cases["rms_norm"])._replace(rivals=(rival,))])
    lines: list[str] = []
    rows = bench.Rows(lines.append)
    bench._gpu_table(["rms_norm"], torch.device("cpu"), rows)
    assert rows.wrong == 0
    assert lines[0].startswith("NVIDIA H200; torch ")
    assert lines[1] == "measured now: copy 4000 GB/s, products bf16 700 Top/s"
    assert lines[-1].split()[:6] == ["rms_norm", "16", "tokens", "x", "64", "50.0"]
    assert "of a copy; fla 50.0" in lines[-1]


def test_a_wrong_or_failing_op_is_told_in_its_row_and_the_others_go_on(monkeypatch, capsys, cases):
    def failing(backend):
        raise RuntimeError(f"no {backend}\nat all")

    def wrong(backend):
        return cases["rms_norm"].call(backend) * (2 if backend == "torch" else 1)

    found = [cases["rms_norm"]._replace(call=wrong), cases["rotary_embedding"]._replace(call=failing)]
    monkeypatch.setattr(bench, "cases", lambda _scale: [*found, cases["silu_and_mul"]])
    assert bench.main(["--device", "cpu"]) == 1
    _, _, first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("rms_norm ")
    assert "WRONG: rms_norm: max error " in first
    assert second.startswith("rotary_embedding ")
    assert second.endswith("FAILED: RuntimeError: no torch at all")
    assert third.startswith("silu_and_mul ")
    assert float(third.split()[-3]) > 0


def outside(stdout: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark of one op as a user would, its standard output redirected by the shell."""
    command = f'exec "$0" -m staticfire.kernels.bench silu_and_mul --device cpu {stdout}'
    return subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        (">/dev/full", "standard output cannot be written: No space left on device"),
        (">&-", "standard output is closed: there is nowhere to write"),
    ],
)
def test_a_table_that_cannot_be_written_is_one_clear_error(stdout, reason):
    ended = outside(stdout)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == f"python -m staticfire.kernels.bench: error: {reason}"
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_reader_that_has_had_enough_ends_the_benchmark_quietly():
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "staticfire.kernels.bench", "silu_and_mul", "--device", "cpu"]
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_without_a_gpu_that_is_said_and_triton_is_not_timed(capsys):
    assert bench.main(["reshape_and_cache", "silu_and_mul"]) == 0
    said, head, *rows = capsys.readouterr().out.splitlines()
    assert said.startswith("No GPU: PyTorch alone is timed, on the CPU")
    assert head.split() == ["op", "shape", "torch", "us", "reference", "us", "ratio"]
    assert [row.split()[0] for row in rows] == ["silu_and_mul", "reshape_and_cache"]
    assert all(float(row.split()[-3]) > 0 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["rms_nom"], "did you mean 'rms_norm'?"), (["--device", "gpu"], "PyTorch sees no GPU")],
)
def test_what_cannot_be_done_is_said(capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as caught:
        bench.main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
