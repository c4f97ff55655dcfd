"""From settings to a pipeline: everything exactly once, valid for Buildkite, shell that says what it means."""

import json
import os
import shlex
import subprocess
import time
from importlib.resources import files

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from staticfire.harness.matrix import load
from staticfire.harness.pipeline import read, write
from staticfire.harness.pipeline.build import LOST_AGENT, build
from staticfire.harness.pipeline.escape import interpolated
from staticfire.harness.pipeline.jobs import plan
from staticfire.harness.pipeline.select import select
from staticfire.harness.pipeline.settings import MatrixWork, Settings, TestWork
from staticfire.harness.pipeline.steps import Block, Group
from staticfire.harness.pipeline.validate import faults
from toy_pipeline import FILES, SETTINGS, document, make, planned

SCHEMA = json.loads(
    files("check_jsonschema").joinpath("builtin_schemas", "vendor", "buildkite.json").read_text(encoding="utf-8")
)


def steps(pipeline):
    return {step.key: step for step in pipeline.leaves()}


def test_a_pipeline_is_valid_by_the_published_schema_and_within_the_limits(tmp_path):
    _, _, _, pipeline = planned(tmp_path)
    jsonschema.Draft7Validator(SCHEMA).validate(document(pipeline))
    assert faults(pipeline) == []
    assert read.parse(write.text(pipeline), "x") == pipeline


def test_the_published_schema_can_refuse(tmp_path):
    _, _, _, pipeline = planned(tmp_path)
    bad = document(pipeline)
    bad["steps"][0]["steps"][0]["timeout_in_minutes"] = "soon"
    assert list(jsonschema.Draft7Validator(SCHEMA).iter_errors(bad))


def test_every_cell_and_every_file_of_tests_is_in_exactly_one_job(tmp_path):
    _, jobs, _, pipeline = planned(tmp_path)
    cells = [cell for job in jobs if job.work.key == "hybrid" for cell in job.ids]
    assert sorted(cells) == sorted(cell.id for cell in load("hybrid").cells())
    tests = [name for job in jobs if job.work.key == "unit" for name in job.ids]
    assert sorted(tests) == sorted(FILES)
    typed = [
        word
        for step in pipeline.commands()
        if step.key.startswith("hybrid")
        for line in step.commands
        for before, word in zip(shlex.split(line)[:-1], shlex.split(line)[1:], strict=True)
        if before == "--cell"
    ]
    assert sorted(typed) == sorted(cells)


def test_no_shard_is_without_work(tmp_path):
    text = SETTINGS.replace("shards = 2", "shards = 9")
    _, jobs, _, _ = planned(tmp_path, text)
    assert [len(job.ids) for job in jobs if job.work.key == "unit"] == [1] * len(FILES)


def test_a_model_is_in_as_few_shards_as_the_time_allows(tmp_path):
    _, jobs, _, _ = planned(tmp_path)
    models = [
        {cell.model for cell in load("hybrid").cells() if cell.id in set(job.ids) and cell.verdict == "valid"}
        for job in jobs
        if job.work.key == "hybrid"
    ]
    assert sum(map(len, models)) <= len(models) + 2


def test_checks_come_before_everything_else_and_the_summary_last(tmp_path):
    _, _, _, pipeline = planned(tmp_path)
    made = steps(pipeline)
    assert made["hybrid-1"].depends_on == ("lint", "configurations")
    assert made["lint"].depends_on == ()
    waits = {one.step for one in made["summary"].depends_on}
    assert waits == {"hybrid-1", "hybrid-2", "hybrid-3", "unit-1", "unit-2"}
    assert all(one.allow_failure for one in made["summary"].depends_on)


def test_every_job_is_tried_again_for_a_lost_agent_only(tmp_path):
    _, _, _, pipeline = planned(tmp_path)
    assert {step.retry for step in pipeline.commands()} == {LOST_AGENT}
    assert [(rule.exit_status, rule.signal_reason, rule.limit) for rule in LOST_AGENT.automatic] == [
        (-1, None, 2),
        (255, None, 2),
        (None, "agent_stop", 2),
    ]


def test_devices_queues_excuses_and_optional_work(tmp_path):
    _, _, _, pipeline = planned(tmp_path)
    made = steps(pipeline)
    gpu = made["gpu"]
    assert (gpu.agents, gpu.concurrency, gpu.concurrency_group) == ({"queue": "gpu"}, 2, "toy/h100")
    assert isinstance(made["gpu-ask"], Block)
    assert gpu.depends_on == ("gpu-ask",)
    assert made["gpu-ask"].depends_on == ("lint", "configurations")
    assert made["unit-1"].soft_fail[0].exit_status == 1
    assert [key for key, step in made.items() if getattr(step, "soft_fail", ())] == ["unit-1", "unit-2"]


def test_what_a_change_does_not_need_is_skipped_with_the_reason(tmp_path):
    _, _, _, pipeline = planned(tmp_path, changed=["engine/core.py"])
    made = steps(pipeline)
    assert made["hybrid-1"].skip is None
    assert made["unit-1"].skip == "nothing changed in src/, tests/"
    assert {one.step for one in made["summary"].depends_on} == {"hybrid-1", "hybrid-2", "hybrid-3"}
    assert faults(pipeline) == []


def test_keys_do_not_change_with_labels_timings_or_selection(tmp_path):
    first = [step.key for step in planned(tmp_path)[3].leaves()]
    second = planned(tmp_path, SETTINGS.replace('label = "unit tests"', ""), changed=["engine/x"])[3]
    assert [step.key for step in second.leaves()] == first


def test_every_script_parses_and_says_to_bash_what_it_said_to_us(tmp_path):
    _, _, _, pipeline = planned(tmp_path)
    for step in pipeline.commands():
        script = "\n".join(step.commands)
        done = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert interpolated(_written(pipeline, step.key), {}) == script


def _written(pipeline, key):
    flat = [leaf for step in document(pipeline)["steps"] for leaf in step.get("steps", [step])]
    return "\n".join(next(leaf["commands"] for leaf in flat if leaf.get("key") == key))


@hypothesis_settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\\"), min_size=1), min_size=1, max_size=4)
)
def test_any_name_reaches_the_program_as_it_is(names):
    """What a job quotes comes out of bash as it went in, after an agent has uploaded it."""
    line = shlex.join(["printf", "%s\\n", *names]).replace("%s\\n", "%s|")
    uploaded = interpolated(yaml.safe_load(yaml.safe_dump(line.replace("$", "$$"))), {"HOME": "wrong"})
    done = subprocess.run(["bash", "-e", "-c", uploaded], capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{name}|" for name in names)


def test_the_exit_status_of_a_job_is_that_of_its_command_whatever_is_told_of_it(tmp_path):
    make(tmp_path)
    text = SETTINGS.replace("make setup", "true").replace("make lint # all of it", "sh -c 'exit 7' # all of it")
    _, _, _, pipeline = planned(tmp_path, text.replace('needs = ["src/"]', 'annotation = "a.md"', 1))
    script = "\n".join(steps(pipeline)["lint"].commands)
    (tmp_path / "a.md").write_text("why")
    agent = tmp_path / "bin" / "buildkite-agent"  # this test may itself be a job, with an agent that works
    agent.parent.mkdir()
    agent.write_text("#!/bin/sh\nexit 1\n")
    agent.chmod(0o755)
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{agent.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7
    assert "the annotation could not be shown" in done.stdout


def test_five_hundred_jobs_are_planned_in_two_seconds(tmp_path):
    for number in range(600):
        file = tmp_path / "tests" / f"d{number % 20}" / f"test_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    settings = Settings(
        matrix=(MatrixWork(key="hybrid", file="hybrid", shards=70),),
        tests=(TestWork(key="tests", path="tests", shards=430),),
    )
    start = time.process_time()
    jobs = plan(settings, tmp_path)
    pipeline = build(settings, jobs, select(jobs, None, settings))
    parts = write.parts(pipeline)
    texts = [write.text(part) for part in parts]
    seconds = time.process_time() - start
    assert len(jobs) == 500
    assert sum(text.count("timeout_in_minutes") for text in texts) == 501
    assert seconds < 6  # a third of it on an idle machine


def test_groups_hold_several_steps_and_single_ones_stand_alone(tmp_path):
    _, _, _, pipeline = planned(tmp_path)
    groups = {step.key: len(step.steps) for step in pipeline.steps if isinstance(step, Group)}
    assert groups == {"checks": 2, "hybrid-all": 3, "unit-all": 2, "gpu-all": 2}


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_tests_are_cut_by_folder_as_deep_as_is_asked(tmp_path, depth):
    text = SETTINGS.replace('label = "unit tests"', f"depth = {depth}")
    _, jobs, _, _ = planned(tmp_path, text)
    names = sorted(name for job in jobs if job.work.key == "unit" for name in job.ids)
    assert names == {0: sorted(FILES), 1: ["tests/deep", "tests/it's", "tests/test_a.py"], 2: sorted(FILES)}[depth]


def test_what_is_excluded_is_in_no_job(tmp_path):
    text = SETTINGS.replace('label = "unit tests"', 'exclude = ["tests/deep/"]')
    _, jobs, _, _ = planned(tmp_path, text)
    names = {name for job in jobs if job.work.key == "unit" for name in job.ids}
    assert names == {name for name in FILES if not name.startswith("tests/deep/")}


def test_an_annotation_is_headed_by_the_label_without_its_emoji(tmp_path):
    text = SETTINGS.replace('label = "unit tests"', 'label = ":pytest: unit tests"')
    _, _, _, pipeline = planned(tmp_path, text)
    assert "--title 'unit tests'" in "\n".join(steps(pipeline)["unit-1"].commands)
