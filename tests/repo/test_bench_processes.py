"""The benchmark of process boundaries: what it compares; the times themselves are never asserted."""

from pathlib import Path

import pytest

from staticfire.harness.models.make import ensure

pytestmark = pytest.mark.engine


@pytest.fixture
def bench():
    import bench_processes

    return bench_processes


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_both_sides_do_the_same_work_in_turn(bench, monkeypatch: pytest.MonkeyPatch):
    log: list[tuple[bool, int]] = []
    real = bench.engine_side

    def side(llm):
        run = real(llm)

        def logged(work):
            log.append((llm.config.parallel.enable_multiprocessing, work.tokens))
            return run(work)

        return logged

    monkeypatch.setattr(bench, "engine_side", side)
    pairs = bench.throughput(ensure("jamba-tiny"), bench.Work([[5, 6, 7]] * 3, [4] * 3), rounds=2)
    assert log == [(True, 12), (False, 12)] * 3
    assert len(pairs) == 2


def test_a_goal_that_is_missed_is_told(bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    folder = ensure("jamba-tiny")
    monkeypatch.setattr(bench, "ensure", lambda _name: folder)
    monkeypatch.setattr(bench, "throughput", lambda *_: [(1.3, 1.0)])
    monkeypatch.setattr(bench, "starts", lambda *_: [(5.0, 1.0)])
    monkeypatch.setattr(bench.os, "environ", {})
    assert bench.main(["--force", "--threads", "1"]) == 1
    said = capsys.readouterr()
    assert "costs 23% of the throughput, the goal is 15%" in said.err
    assert "4.0 s beyond torch, the goal is 2.5 s" in said.err
    monkeypatch.setattr(bench, "throughput", lambda *_: [(1.1, 1.0)])
    monkeypatch.setattr(bench, "starts", lambda *_: [(2.0, 1.0)])
    assert bench.main(["--force", "--threads", "1"]) == 0
    assert "| **0.91** |" in capsys.readouterr().out


def test_the_table_of_the_docs_is_what_is_printed(bench, repo_root: Path):
    text = (repo_root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "tools/bench_processes.py" in text
    assert f"{bench.MODEL}, 16 prompts" in text
    assert f"less than {bench.MOST_COST:.0%}".replace("%", " %") in text
    assert f"{bench.MOST_START_S} s beyond" in text
