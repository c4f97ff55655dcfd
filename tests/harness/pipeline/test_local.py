"""A pipeline run on one machine: order, exit codes, what is not run and why, annotations, nothing left behind."""

import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.pipeline import local
from staticfire.harness.pipeline.steps import Block, Command, Dependency, Group, Pipeline, SoftFail, needed
from waiting import soon_gone


def step(key, *commands, **more):
    return Command(label=key, key=key, commands=commands or ("true",), **more)


def run(tmp_path, *steps, env=None):
    folder, root = tmp_path / "stand-in", tmp_path / "checkout"
    folder.mkdir(), root.mkdir(exist_ok=True)
    begun = []
    build = local.run(Pipeline(env=env, steps=steps), root, os.environ, lambda one: begun.append(one.key), folder)
    return build, begun, root


def states(build):
    return {one.key: one.state for one in build.steps}


def test_steps_run_after_what_they_depend_on_in_groups_too(tmp_path):
    group = Group(group="g", key="g", steps=(step("b", "echo b >> log", depends_on=("c",)),))
    build, begun, root = run(tmp_path, group, step("c", "echo c >> log"), step("a", "echo a >> log"))
    assert (root / "log").read_text().split() == begun == ["c", "b", "a"]
    assert not build.red


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef"))))
def test_the_order_keeps_every_dependency(needs):
    acyclic = {key: tuple(sorted(one for one in of if one < key and one in needs)) for key, of in needs.items()}
    pipeline = Pipeline(steps=tuple(step(key, depends_on=of) for key, of in acyclic.items()))
    order = [one.key for one in local.order(pipeline)]
    assert sorted(order) == sorted(acyclic)
    for one in pipeline.leaves():
        assert all(order.index(key) < order.index(one.key) for key in needed(one))


def test_a_failure_makes_the_build_red_and_what_waits_for_it_does_not_run(tmp_path):
    build, begun, _ = run(
        tmp_path,
        step("bad", "exit 3", "echo unreachable > log"),
        step("after", depends_on=("bad",)),
        step("anyway", depends_on=(Dependency(step="bad", allow_failure=True),)),
    )
    assert states(build) == {"bad": "failed", "after": "not run", "anyway": "passed"}
    assert build.red
    assert begun == ["bad", "anyway"]
    assert build.steps[0].why == "exit status 3"
    assert build.steps[1].why == "bad failed"


def test_an_excused_failure_is_no_failure(tmp_path):
    excused = step("soft", "exit 1", soft_fail=(SoftFail(exit_status=1),))
    other = step("hard", "exit 2", soft_fail=(SoftFail(exit_status=1),))
    build, _, _ = run(tmp_path, excused, other, step("after", depends_on=("soft",)))
    assert states(build) == {"soft": "soft failed", "hard": "failed", "after": "passed"}


def test_what_waits_for_a_person_waits_and_what_is_skipped_counts_as_passed(tmp_path):
    build, begun, _ = run(
        tmp_path,
        Block(block="Run?", key="ask"),
        step("optional", depends_on=("ask",)),
        step("left-out", skip="nothing changed"),
        step("after", depends_on=("left-out",)),
    )
    assert states(build) == {"ask": "waits", "optional": "waits", "left-out": "skipped", "after": "passed"}
    assert not build.red
    assert begun == ["after"]


def test_annotations_are_kept_and_the_last_one_of_a_context_counts(tmp_path):
    script = "echo first | buildkite-agent annotate --context a/b --style error"
    build, _, _ = run(tmp_path, step("x", script, "echo last | buildkite-agent annotate --style info --context a/b"))
    assert [(one.context, one.style, one.body) for one in build.annotations] == [("a_b", "info", "last\n")]


def test_a_job_sees_the_environment_that_it_is_given_and_knows_its_key(tmp_path):
    write = step("x", 'printf %s "$A $B $BUILDKITE_STEP_KEY" > log', env={"B": "$2"})
    _, _, root = run(tmp_path, write, env={"A": "1", "B": "no"})
    assert (root / "log").read_text() == "1 $2 x"


def test_what_the_stand_in_does_not_know_fails_aloud(tmp_path):
    build, _, _ = run(tmp_path, step("x", "buildkite-agent secret get TOKEN"))
    assert build.red


def test_a_job_beyond_its_time_is_ended_with_everything_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "MINUTE", 0.01)
    slow = step("slow", "sleep 600 & echo $! > pid", "wait", timeout_in_minutes=60)
    start = time.monotonic()
    build, _, root = run(tmp_path, slow)
    assert time.monotonic() - start < 30
    assert states(build) == {"slow": "timed out"}
    pid = int((root / "pid").read_text())
    assert soon_gone(pid)


def test_artifacts_of_this_build_come_back_under_their_paths_and_nothing_else_does(tmp_path):
    make = step("make", "mkdir -p 'r/a b/1' r/2", "echo one > 'r/a b/1/x.xml'; echo two > r/2/x.xml",
                "buildkite-agent artifact upload 'r/a b/1/x.xml'", depends_on=())  # fmt: skip
    fetch = step(
        "fetch",
        "mkdir got",
        "buildkite-agent artifact download 'r/*/1/x.xml' got/",
        "! buildkite-agent artifact download 'r/2/x.xml' got/",
        depends_on=("make",),
    )
    build, _, root = run(tmp_path, make, fetch)
    assert not build.red
    assert [path.relative_to(root / "got").as_posix() for path in (root / "got").rglob("*.xml")] == ["r/a b/1/x.xml"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_job_and_all_that_it_started_and_the_rest_is_not_run(tmp_path, number):
    wait = f"sleep 600 & echo $! > pid; kill -{number:d} {os.getpid()}; wait"
    build, begun, root = run(tmp_path, step("first"), step("long", wait), step("last", depends_on=("first",)))
    assert states(build) == {"first": "passed", "long": "interrupted", "last": "not run"}
    assert soon_gone(int((root / "pid").read_text()))
    assert begun == ["first", "long"]
    assert build.red
    assert build.interrupted is not None
    assert build.interrupted.exit_code == 128 + number
