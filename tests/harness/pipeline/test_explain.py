"""Why a step is there, how pipelines differ, and the file for vLLM's own generator."""

import shlex

import msgspec
import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline import settings, vllm_area
from staticfire.harness.pipeline.escape import interpolated
from staticfire.harness.pipeline.explain import diff, explain
from staticfire.harness.pipeline.jobs import plan
from staticfire.harness.pipeline.steps import Command, Pipeline
from toy_pipeline import SETTINGS, TODAY, planned


def explained(root, key, changed=None):
    known, jobs, choices, pipeline = planned(root, changed=changed)
    return "\n".join(explain(key, jobs, choices, pipeline, known))


def test_a_step_says_why_where_after_what_for_how_long_and_what(tmp_path):
    text = explained(tmp_path, "unit-1", changed=["src/a.py"])
    assert "selected: src/a.py changed, and it depends on src/" in text
    assert "depends on the paths: src/, tests" in text
    assert "runs on: cpu (queue cpu), at most 30 minutes" in text
    assert "after: lint, configurations" in text
    assert "may fail until 2027-01-01: it is new (someone)" in text
    assert "for 2 items, 2 of them never measured" in text
    assert "python -m pytest" in text


def test_a_step_that_does_not_run_says_why_not(tmp_path):
    assert "not selected: nothing changed in engine/" in explained(tmp_path, "hybrid", changed=["src/a.py"])


def test_all_shards_of_a_matrix_by_its_key_and_a_near_name_for_an_unknown_one(tmp_path):
    assert explained(tmp_path, "hybrid").count("runs on:") == 3
    with pytest.raises(InputError, match=r"no step 'lnt'. Did you mean 'lint'"):
        explained(tmp_path, "lnt")
    with pytest.raises(InputError, match=r"no step 'unti'. Did you mean 'unit'"):
        explained(tmp_path, "unti")


def test_a_step_that_no_table_describes_is_explained_too(tmp_path):
    text = explained(tmp_path, "summary")
    assert "sums up" in text
    assert "after: " in text
    assert "annotate" in text
    _, _, _, pipeline = planned(tmp_path)
    for step in pipeline.leaves():
        assert explained(tmp_path, step.key).startswith(f"{step.key}: ")


def test_a_pipeline_does_not_differ_from_itself(tmp_path):
    pipeline = planned(tmp_path)[3]
    assert diff(pipeline, pipeline) == []


def test_a_difference_is_told_by_step_and_field_and_a_cell_by_a_line(tmp_path):
    old = planned(tmp_path)[3]
    new = planned(tmp_path, SETTINGS.replace("make lint", "make lint types"), changed=["src/a.py"])[3]
    lines = diff(old, new)
    assert "~ lint:" in lines
    assert any(line.strip() == "skip: nothing -> nothing changed in engine/" for line in lines)
    one = Command(label="x", key="k", commands=("run --cell a --cell b",))
    changed = msgspec.structs.replace(one, commands=("run --cell a --cell c",))
    told = diff(
        Pipeline(steps=(one,)), Pipeline(env={"A": "1"}, steps=(changed, msgspec.structs.replace(one, key="n")))
    )
    assert told == ["+ n: x", "~ k:", "    commands:", "    -   --cell b", "    +   --cell c", "~ env A: nothing -> 1"]
    assert diff(Pipeline(steps=(one,)), Pipeline(steps=())) == ["- k: x"]


def test_a_test_area_is_flat_keyed_and_names_its_dependencies(tmp_path):
    text = SETTINGS.replace("'check $1.md'", "check.md").replace('annotation = "check $1.md"', "")
    settings, jobs, _, _ = planned(tmp_path, text)
    plain = [job for job in jobs if job.work.key not in {"unit", "gpu"}]
    area = vllm_area.document(settings, plain)
    assert area["group"] == "toy"
    assert all({"label", "key", "device", "commands"} <= set(step) for step in area["steps"])
    hybrid = next(step for step in area["steps"] if step["key"] == "hybrid-1")
    assert hybrid["source_file_dependencies"] == ["engine/"]
    assert hybrid["device"] == "cpu-small"


def test_what_the_agent_would_interpolate_there_is_escaped_too(tmp_path):
    text = "[[check]]\nkey = 'a'\ncommand = 'echo $HOME'\n[check.env]\nCOST = '$5'\n"
    found = settings.parse(text, "p.toml", TODAY)
    (step,) = vllm_area.document(found, plan(found, tmp_path))["steps"]
    assert (step["commands"], step["env"]) == (["echo $$HOME"], {"COST": "$$5"})
    assert interpolated(step["commands"][0], {"HOME": "/x"}) == "echo $HOME"
    found = settings.parse("[[check]]\nkey = 'a'\ncommand = 'echo \\$HOME'\n", "p.toml", TODAY)
    with pytest.raises(InputError, match=r"step a: commands: column 7: a backslash before \$"):
        vllm_area.document(found, plan(found, tmp_path))


def test_a_command_that_generator_would_change_is_refused(tmp_path):
    known, jobs, _, _ = planned(tmp_path)
    with pytest.raises(InputError, match="single quotes become double quotes") as refused:
        vllm_area.document(known, jobs)
    assert "step 'unit-" in str(refused.value)
    assert shlex.quote("it's") != "it's"
