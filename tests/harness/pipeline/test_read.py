"""Strict steps: what a misspelt key means is said, and a pipeline that was written reads the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline import read, write
from staticfire.harness.pipeline.steps import Block, Command, Dependency, Group, Pipeline, Retry, RetryRule, SoftFail

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\\", exclude_categories=["Cc", "Cs"]), max_size=30)
LINES = st.lists(TEXT.map(lambda text: f"echo {text}"), min_size=1, max_size=3)


@st.composite
def commands(draw, key):
    return Command(
        label=draw(TEXT),
        key=key,
        commands=tuple(draw(LINES)),
        env=draw(st.none() | st.dictionaries(st.sampled_from(["A", "B"]), TEXT, min_size=1)),
        agents={"queue": "cpu"},
        depends_on=tuple(draw(st.lists(st.just(Dependency(step="x", allow_failure=True)), max_size=1))),
        retry=draw(st.none() | st.just(Retry(automatic=(RetryRule(exit_status=-1, limit=2),)))),
        soft_fail=tuple(draw(st.lists(st.just(SoftFail(exit_status=1)), max_size=1))),
        timeout_in_minutes=draw(st.none() | st.integers(1, 99)),
    )


@given(st.data())
def test_a_pipeline_that_is_written_reads_the_same(data):
    steps = (
        Group(group="all", key="g", steps=(data.draw(commands("a")), Block(block="Run?", key="b"))),
        data.draw(commands("c")),
    )
    pipeline = Pipeline(env={"COST": "$5"}, steps=steps)
    assert read.parse(write.text(pipeline, "head"), "x") == pipeline


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("{comand: make, label: x, key: k}", "needs one of command, commands, block, group.*Did you mean 'command'"),
        ("{command: make, label: x, key: k, artifact_path: x}", "'artifact_path'. Did you mean 'artifact_paths'"),
        (
            "{command: make, label: x, key: k, retry: {automatic: [{exit_statuss: -1}]}}",
            "retry: automatic: unknown key 'exit_statuss'. Did you mean 'exit_status'",
        ),
        ("{command: make, label: x, key: k, timeout_in_minutes: soon}", "timeout_in_minutes"),
        ("{command: make, label: x}", "key"),
        ("[make]", "a step is a mapping, not list"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_key(step, said):
    with pytest.raises(InputError, match=said) as refused:
        read.parse(f"steps:\n  - {step}\n", "p.yaml")
    assert "p.yaml: steps[0]" in str(refused.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InputError) as refused:
        read.parse("stepz: 1\nsteps:\n  - {comand: a}\n  - {group: g, key: g, steps: [{block: b, kye: c}]}\n", "p")
    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize("text", ["steps: []", "steps: x", "- a", "steps: [}", ""])
def test_what_is_no_pipeline_is_refused(text):
    with pytest.raises(InputError, match=r"^p: "):
        read.parse(text, "p")


def test_a_text_that_cannot_be_uploaded_is_named_by_step_and_column():
    pipeline = Pipeline(steps=(Command(label="x", key="bad", commands=(r"echo \$HOME",)),))
    with pytest.raises(InputError, match=r"step bad: commands: column 7: a backslash"):
        write.text(pipeline)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"steps:\n  - command: caf\xe9\n", "not UTF-8 text at byte 23"),
        (b"steps: &a\n  - *a\n", "nested too deeply, or in itself"),
        (b"steps: " + b"[" * 3000 + b"]" * 3000, "nested too deeply, or in itself"),
        (b"a: 2026-13-45\n", "not YAML: month must be in 1..12"),
    ],
)
def test_a_file_that_is_no_pipeline_is_refused_by_name(tmp_path, content, said):
    (tmp_path / "p.yaml").write_bytes(content)
    with pytest.raises(InputError, match=re.escape(f"{tmp_path / 'p.yaml'}: {said}")):
        read.load(tmp_path / "p.yaml")
    with pytest.raises(InputError, match="No such file"):
        read.load(tmp_path / "q.yaml")
