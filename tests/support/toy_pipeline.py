"""A small project to plan pipelines of: three folders of tests, a matrix, settings."""

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from staticfire.harness.pipeline import settings, write
from staticfire.harness.pipeline.build import build
from staticfire.harness.pipeline.jobs import Job, plan
from staticfire.harness.pipeline.select import Choice, select
from staticfire.harness.pipeline.settings import Settings
from staticfire.harness.pipeline.steps import Pipeline

TODAY = dt.date(2026, 11, 30)
SETTINGS = """
[pipeline]
name = "toy"
setup = "make setup"
run_all = ["pyproject.toml"]
ignore = ["*.md"]

[pipeline.env]
COST = "$5"

[devices.cpu]
queue = "cpu"

[devices.h100]
queue = "gpu"
concurrency = 2

[[check]]
key = "lint"
command = "make lint # all of it"
needs = ["src/"]

[[check]]
key = "configurations"
command = "staticfire check tests --format buildkite --output 'check $1.md'"
annotation = "check $1.md"

[[matrix]]
key = "hybrid"
file = "hybrid"
shards = 3
needs = ["engine/"]

[[tests]]
key = "unit"
label = "unit tests"
path = "tests"
shards = 2
needs = ["src/"]
soft_fail = { owner = "someone", until = 2027-01-01, reason = "it is new" }

[[tests]]
key = "gpu"
path = "tests"
device = "h100"
optional = true
"""
FILES = ("tests/test_a.py", "tests/deep/test_b.py", "tests/deep/c_test.py", "tests/it's/test_$HOME d.py")


def make(root: Path, text: str = SETTINGS) -> Settings:
    for file in (*FILES, "tests/helper.py", "tests/.hidden/test_x.py", "tests/__pycache__/test_y.py"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("def test_it(): assert True\n")
    return settings.parse(text, "toy.toml", TODAY)


def planned(
    root: Path, text: str = SETTINGS, changed: Sequence[str] | None = None
) -> tuple[Settings, tuple[Job, ...], Mapping[str, Choice], Pipeline]:
    made = make(root, text)
    jobs = plan(made, root)
    choices = select(jobs, changed, made)
    return made, jobs, choices, build(made, jobs, choices)


def document(pipeline: Pipeline) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(write.text(pipeline))
    return made
