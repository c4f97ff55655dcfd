"""A run that is killed and resumed, however often, reaches the verdicts of a run that is left alone."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_cli import Toy
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run import journal as journals
from staticfire.harness.run import runner
from staticfire.harness.run.identity import Identity
from staticfire.harness.run.job import JobContext
from staticfire.harness.run.result import VERDICTS, CellResult
from staticfire.harness.run.runner import RunRequest
from staticfire.harness.run.supervisor import Settings

IDENTITY = Identity(matrix="m", digest="d", job="j:j", content="c", versions={})


class KilledError(BaseException):
    """The run ends here."""


class World:
    """Cells with known verdicts, an executor that dies on demand, and a record of what was executed when."""

    def __init__(self, folder, verdicts):
        self.out = Path(folder)
        self.cells = [Cell(f"c{n}", {"model": "m", "n": n}, "valid") for n in range(len(verdicts))]
        self.truth = {
            cell.id: CellResult(id=cell.id, axes=cell.axes, verdict=verdict, seconds=1.0, detail={"text": "é\n" * n})
            for n, (cell, verdict) in enumerate(zip(self.cells, verdicts, strict=True))
        }
        self.told = set()

    def sit(self, order, dies_after, torn):
        """One sitting: cells in `order`, killed after so many verdicts, while `torn` bytes of one more were written."""
        world = self

        class Executor:
            def __init__(self, settings, record, listener, signals):
                self.record, self.listener = record, listener

            def run(self, cells):
                for count, cell in enumerate(sorted(cells, key=lambda c: order.index(c.id))):
                    assert cell.id not in world.told, "a cell ran again after its verdict"
                    if count == dies_after:
                        raise KilledError(cell.id)
                    self.record(world.truth[cell.id])
                    self.listener.finished(world.truth[cell.id])
                if dies_after is not None and dies_after >= len(cells):
                    raise KilledError(None)

        request = RunRequest(
            file="m.toml",
            identity=IDENTITY,
            cells=self.cells,
            everything=self.cells,
            selective=False,
            out=self.out,
            resume=True,
            reports=[],
            settings=Settings(job="j:j", context=JobContext(matrix_file="m"), workers=1, timeout=1, environment={}),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runner, "Supervisor", Executor)
            try:
                return runner.run(request, self, lambda _: None)
            except KilledError as killed:
                self._tear(killed.args[0], torn)
                return None

    def _tear(self, cell_id, torn):
        if cell_id is not None:
            line = msgspec.json.encode(self.truth[cell_id])
            with (self.out / "journal.jsonl").open("ab") as file:
                file.write(line[: torn % len(line)])

    def opened(self, todo, done, set_aside):
        assert {result.id for result in done} == self.told
        assert todo == len(self.cells) - len(self.told)
        assert set_aside is None

    def started(self, cell, worker):
        pass

    def finished(self, result):
        self.told.add(result.id)

    def tick(self):
        pass


sittings = st.lists(st.tuples(st.randoms(), st.integers(0, 12), st.integers(0, 10_000)), max_size=6)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.sampled_from(VERDICTS), min_size=1, max_size=12), sittings, st.randoms())
def test_killed_anywhere_and_resumed_it_ends_like_a_run_left_alone(verdicts, killed, last):
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, verdicts)
        ids = [cell.id for cell in world.cells]
        for generator, dies_after, torn in killed:
            assert world.sit(generator.sample(ids, len(ids)), dies_after, torn) is None
            held = journals.read(world.out / "journal.jsonl").results
            assert {result.id for result in held} == world.told, "what was told is on disk, whole"
        record = world.sit(last.sample(ids, len(ids)), None, 0)
        assert record.complete
        assert list(record.results) == list(world.truth.values())
        lines = (world.out / "journal.jsonl").read_bytes().splitlines()
        assert len(lines) == len(ids) + 1
        assert Counter(json.loads(line)["id"] for line in lines[1:]) == Counter(ids)


ACTIONS = {"seed2": "fail", "seed5": "refuse:SF101", "seed7": "throw:value", "seed9": "leave:3"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_three_kills_at_random_moments_lose_and_repeat_nothing(tmp_path, seed):
    generator = random.Random(seed)
    unbroken_folder = tmp_path / "unbroken"
    unbroken_folder.mkdir()
    unbroken, broken = Toy(unbroken_folder, 12), Toy(tmp_path, 12)
    assert unbroken.run("-j", "2", **ACTIONS)[0] == 1
    settled: dict[str, str] = {}
    seen = 0
    for sitting in range(3):
        run = broken.start("-j", "2", "--resume", default="wait:0.15", **ACTIONS)
        broken.wait_for_starts(seen + generator.randint(1, 3))
        time.sleep(generator.uniform(0, 0.2))
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=60)
        assert broken.no_worker_left()
        began = [name for name, _ in broken.starts()[seen:]]
        assert not settled.keys() & set(began), f"sitting {sitting} ran a cell that had its verdict"
        seen = len(broken.starts())
        settled = dict(broken.journaled())
    code, _, errors = broken.run("-j", "2", "--resume", default="wait:0.15", **ACTIONS)
    assert (code, errors) == (1, "")
    assert not settled.keys() & {name for name, _ in broken.starts()[seen:]}
    assert broken.results() == unbroken.results()
    assert Counter(name for name, _ in broken.journaled()) == Counter(broken.ids)


@pytest.mark.engine
@pytest.mark.nightly
def test_three_kills_of_the_real_matrix(tmp_path, cache_dir):
    """The same with the engine: the cells of jamba-tiny in the shipped matrix."""
    choice = ["--select", "model=jamba-tiny", "--cache", str(cache_dir)]
    command = [sys.executable, "-m", "staticfire", "run", "hybrid", "-j", "2", *choice, "--out"]
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    journal, settled = broken / "journal.jsonl", 0
    for kill in range(3):
        run = subprocess.Popen([*command, str(broken), "--resume"])
        while not journal.exists() or journal.read_bytes().count(b"\n") - 1 < settled + 2 + kill:
            assert run.poll() is None
            time.sleep(0.05)
        run.kill()
        run.wait()
        settled = len(journals.read(journal).results)
    first = journals.read(journal).results
    subprocess.run([*command, str(broken), "--resume"], check=False)
    subprocess.run([*command, str(unbroken)], check=False)
    cells = [json.loads((folder / "results.json").read_text())["cells"] for folder in (broken, unbroken)]
    verdicts = [{cell["id"]: cell["verdict"] for cell in run} for run in cells]
    assert verdicts[0] == verdicts[1]
    assert len(verdicts[0]) > settled >= 9
    kept = {cell["id"]: cell["seconds"] for cell in cells[0]}
    assert all(kept[result.id] == result.seconds for result in first), "a verdict was reached twice"
