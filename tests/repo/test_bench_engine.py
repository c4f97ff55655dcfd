"""The engine benchmark: what it compares, and how it counts; the times themselves are never asserted."""

import json
from pathlib import Path

import bench_common
import pytest

pytestmark = pytest.mark.engine


@pytest.fixture
def bench():
    import bench_engine

    return bench_engine


def test_prompts_come_from_the_committed_file(bench, repo_root: Path):
    spec = json.loads((repo_root / "tools" / "bench_prompts.json").read_text())
    work = bench.scenarios(512)
    assert len(spec["prompt_lengths"]) == 16
    assert (min(spec["prompt_lengths"]), max(spec["prompt_lengths"])) == (20, 300)
    for task in work.values():
        assert [len(prompt) for prompt in task.prompts] == spec["prompt_lengths"]
        assert all(3 <= token < 512 for prompt in task.prompts for token in prompt)
    assert work == bench.scenarios(512)
    assert work["equal lengths"].tokens == 16 * 64
    assert work["mixed lengths"].outputs == spec["mixed_output_tokens"]
    assert len(set(spec["mixed_output_tokens"])) == 16


def test_rounds_are_interleaved_and_the_first_is_thrown_away(bench):
    log: list[str] = []

    def side(name: str, seconds: float):
        def run(task) -> float:
            log.append(f"{name}{len(task.outputs)}")
            return seconds * len(task.outputs)

        return run

    work = {"a": bench.Work([[1]], [1]), "b": bench.Work([[1]] * 2, [1] * 2)}
    samples = bench.measure(side("e", 1.0), side("t", 3.0), work, 2)
    assert log == ["e1", "t1", "e2", "t2"] * 3
    assert samples == {"a": [(1.0, 3.0)] * 2, "b": [(2.0, 6.0)] * 2}


def test_decode_is_what_is_left_of_each_round(bench):
    samples = bench.with_decode({"equal lengths": [(3.0, 10.0), (4.0, 11.0)], "prefill": [(1.0, 4.0), (1.5, 5.0)]})
    assert samples["decode"] == [(2.0, 6.0), (2.5, 6.0)]


def test_the_ratio_is_the_median_of_the_rounds(bench):
    assert bench.ratio([(1.0, 2.0), (1.0, 30.0), (2.0, 6.0)]) == 3.0


def test_rows_count_what_was_asked_for(bench):
    work = bench.scenarios(512)
    samples = {name: [(0.5, 1.0)] for name in (*work, "decode")}
    rows = {row.split("|")[2].strip(): row for row in bench.rows("m", samples, work)}
    assert f"| {16 * 64 * 2:,} | {16 * 64:,} | **2.00** |" in rows["equal lengths"]
    assert f"| {16 * 63 * 2:,} | {16 * 63:,} |" in rows["decode"]
    prompt_tokens = sum(map(len, work["prefill"].prompts))
    assert f"| {2 * prompt_tokens:,} | {prompt_tokens:,} |" in rows["prefill"]
    assert f"| {2 * work['mixed lengths'].tokens:,} |" in rows["mixed lengths"]


def test_a_busy_machine_is_refused(bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("os.getloadavg", lambda: (64.0, 1.0, 1.0))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert bench.main([]) == 2
    assert "busy (load 64.0 on 4 cores)" in capsys.readouterr().err
    assert not bench_common.busy(1.9, 4)


@pytest.mark.slow
def test_both_sides_do_the_work(bench, jamba_folder: Path):
    task = bench.Work([[5, 6, 7], [8]], [2, 5])
    assert bench.engine_side(bench.open_engine(jamba_folder))(task) > 0
    assert bench.transformers_side(jamba_folder)(task) > 0


@pytest.fixture
def jamba_folder(cache_dir: Path) -> Path:
    from staticfire.harness.models.make import ensure

    return ensure("jamba-tiny", cache_dir)
