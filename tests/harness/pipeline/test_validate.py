"""Every limit of Buildkite, at it and one above, and what the published schema lets through."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.pipeline import limits, write
from staticfire.harness.pipeline.steps import (
    Adjustment,
    Block,
    Command,
    Group,
    Matrix,
    Pipeline,
    Retry,
    RetryRule,
    jobs,
    needed,
)
from staticfire.harness.pipeline.validate import cycle, faults


def step(key="a", **more):
    return Command(**{"label": key, "key": key, "commands": ("make",), **more})


def told(*steps, most=limits.JOBS_PER_UPLOAD):
    return faults(Pipeline(steps=steps), most)


def retry(**rule):
    return Retry(automatic=(RetryRule(**rule),))


GOOD = [
    step(key="a" * limits.KEY_LENGTH),
    step(skip="x" * limits.SKIP_LENGTH),
    step(concurrency=1, concurrency_group="g" * limits.CONCURRENCY_GROUP_LENGTH, concurrency_method="eager"),
    step(retry=retry(exit_status=-1, limit=limits.RETRY_LIMIT)),
    step(retry=retry(exit_status=(-1, 255), limit=1)),
    step(retry=retry(signal_reason="agent_stop", limit=2)),
    step(matrix=Matrix(setup={"x": tuple(range(25)), "y": (1, 2)})),
    step(parallelism=limits.JOBS_PER_UPLOAD),
    step(commands=("x" * limits.COMMAND_BYTES,)),
]
BAD = [
    (step(key="a" * (limits.KEY_LENGTH + 1)), "the key has 101 characters"),
    (step(key="a b"), "a key is made of"),
    (step(key="01234567-89ab-cdef-0123-456789abcdef"), "look like a UUID"),
    (step(skip="x" * (limits.SKIP_LENGTH + 1)), "the reason to skip has 71"),
    (step(commands=()), "no command"),
    (step(commands=(" ",)), "no command"),
    (step(commands=("ü" * (limits.COMMAND_BYTES // 2 + 1),)), "use more shards"),
    (step(timeout_in_minutes=0), "timeout_in_minutes must be"),
    (step(concurrency=1), "need each other"),
    (step(concurrency_group="g"), "need each other"),
    (step(concurrency_method="eager"), "concurrency_method needs"),
    (step(concurrency=0, concurrency_group="g"), "concurrency must be at least 1"),
    (step(concurrency=1, concurrency_group="g" * 201), "concurrency_group is longer"),
    (step(parallelism=0), "parallelism must be"),
    (step(parallelism=2, matrix=Matrix(setup={"x": (1,)})), "exclude each other"),
    (step(matrix=Matrix(setup={"x": tuple(range(26))})), "has 26 elements"),
    (step(matrix=Matrix(setup={"x": tuple(range(17)), "y": (1, 2, 3)})), "a matrix of 51 jobs"),
    (step(matrix=Matrix(setup=dict.fromkeys("abcdefg", (1,)))), "at most 6 dimensions"),
    (step(matrix=Matrix(setup={"x": ("ü" * 65,)})), "more than 128 bytes"),
    (
        step(matrix=Matrix(setup={"x": (1,)}, adjustments=(Adjustment(with_={"x": 1}, skip=True),) * 13)),
        "at most 12 adjustments",
    ),
    (step(retry=retry(exit_status=-1, limit=11)), "needs a limit from 1 to 10"),
    (step(retry=retry(exit_status=-1)), "needs a limit"),
    (step(retry=retry(limit=1)), "for lost agents only"),
    (step(retry=retry(exit_status=1, limit=1)), "for lost agents only"),
    (step(retry=retry(exit_status="*", limit=1)), "for lost agents only"),
    (step(retry=retry(exit_status=(-1, 1), limit=1)), "for lost agents only"),
    (step(retry=retry(signal="SIGKILL", limit=1)), "for lost agents only"),
    (step(depends_on=("b",)), "depends on 'b', which is no step"),
    (Group(group="g", key="g", steps=()), "a group without steps"),
    (Block(block=" ", key="b"), "a block step without a label"),
    (step(parallelism=501), "501 jobs are more than one upload takes"),
]


@pytest.mark.parametrize("good", GOOD)
def test_what_is_within_the_limits_is_no_fault(good):
    assert told(good) == []


@pytest.mark.parametrize(("bad", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_beyond_a_limit_is_told(bad, said):
    assert [fault for fault in told(bad) if said in fault], told(bad)


def test_a_build_takes_more_jobs_than_an_upload_but_not_any_number():
    assert told(step(parallelism=4000), most=limits.JOBS_PER_BUILD) == []
    assert "one build takes (4000)" in told(step(parallelism=4001), most=limits.JOBS_PER_BUILD)[0]


def test_keys_are_unique_in_groups_too_and_a_near_one_is_named():
    group = Group(group="g", key="g", steps=(step("lint"), step("g")))
    assert "step 'g': the key is used 2 times" in told(group)
    assert "Did you mean 'lint'" in told(group, step("test", depends_on=("lnt",)))[-1]


def test_steps_that_wait_for_one_another_are_named():
    assert told(step("a", depends_on=("b",)), step("b", depends_on=("a",))) == [
        "steps wait for one another: a -> b -> a"
    ]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3).map(tuple)))
def test_a_cycle_is_found_exactly_where_there_is_one(needs):
    loop = cycle(needs)
    if loop:
        assert loop[0] == loop[-1]
        assert all(after in needs[before] for before, after in pairwise(loop))
    else:
        left = {key: set(of) & set(needs) for key, of in needs.items()}
        while free := [key for key, of in left.items() if not of]:
            for key in free:
                del left[key]
            left = {key: of - set(free) for key, of in left.items()}
        assert not left


def test_adjustments_add_jobs_and_take_them_away():
    matrix = Matrix(
        setup={"x": (1, 2)},
        adjustments=(Adjustment(with_={"x": 1}, skip=True), Adjustment(with_={"x": 3})),
    )
    assert jobs(step(matrix=matrix)) == 2


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(40, 90))
def test_parts_keep_every_step_once_in_order_and_within_an_upload(sizes, most):
    inside = tuple(step(f"s{n}", parallelism=size) for n, size in enumerate(sizes))
    pipeline = Pipeline(steps=(step("first"), Group(group="g", key="g", steps=inside), step("last")))
    made = write.parts(pipeline, most)
    assert [one.key for part in made for one in part.leaves()] == [one.key for one in pipeline.leaves()]
    assert all(sum(map(jobs, part.leaves())) <= most for part in made)
    assert not any(fault for part in made for fault in faults(part, most))


def test_needed_reads_both_forms_of_a_dependency():
    assert needed(step(depends_on=("a",))) == ("a",)
