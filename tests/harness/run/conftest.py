import os

import pytest

from run_cli import with_fakes
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.environment import worker_environment
from staticfire.harness.run.identity import Identity
from staticfire.harness.run.job import JobContext
from staticfire.harness.run.signals import StopSignals
from staticfire.harness.run.supervisor import Settings, Supervisor


class Story:
    """A listener that remembers, and the results as recorded."""

    def __init__(self):
        self.events = []
        self.results = {}

    def started(self, cell, worker):
        self.events.append(("started", cell.id, worker))

    def finished(self, result):
        assert result.id in self.results, "told before it was recorded"
        self.events.append(("finished", result.id, result.verdict))

    def opened(self, todo, done, set_aside):
        self.events.append(("opened", todo, len(done), set_aside))

    def tick(self):
        pass

    def record(self, result):
        assert result.id not in self.results, "recorded twice"
        self.results[result.id] = result


@pytest.fixture
def story():
    return Story()


@pytest.fixture
def fake_log(tmp_path):
    return tmp_path / "fake.log"


@pytest.fixture
def make_settings(fake_log):
    def make(workers=2, timeout=60.0, job="fake_jobs:do", **changes):
        base = {**os.environ, "PYTHONPATH": with_fakes(), "FAKE_LOG": str(fake_log)}
        return Settings(
            job=job,
            context=JobContext(matrix_file="m.toml"),
            workers=workers,
            timeout=timeout,
            environment=worker_environment(workers, base),
            **changes,
        )

    return make


@pytest.fixture
def cells_that():
    """Cells `c0`, `c1`, ... that do as told, `model` by `model`."""

    def make(*actions, model="m"):
        return [Cell(f"c{n}", {"model": model, "do": action}, "valid") for n, action in enumerate(actions)]

    return make


@pytest.fixture
def supervise(story, make_settings):
    """Run cells under a supervisor; returns what was recorded."""

    def run(cells, **changes):
        with StopSignals() as signals:
            Supervisor(make_settings(**changes), story.record, story, signals).run(cells)
        return story.results

    return run


@pytest.fixture
def identity():
    return Identity(matrix="m", digest="d" * 64, job="j:j", content="c" * 64, versions={"staticfire": "0.1.0"})
