"""The worker's part of an answer: a refusal where every backend speaks of the configuration, and else not known.

The toy engine has four attention backends. COMPILED needs the engine's own extension, REQUIRED a package that the
engine requires and that is absent here, OPTIONAL one that a user may install, BROKEN a library that no machine has.
"""

import itertools

import pytest

from staticfire.harness.probe.base import Accepted, NotKnown, Question, Rejected, Seen, Settled, Undecided, parts_of

# What each backend takes: block sizes that divide, head sizes (none stands for any).
SIZES = {"COMPILED": (16,), "REQUIRED": (16,), "OPTIONAL": (16, 40), "BROKEN": (1,)}
HEADS: dict[str, tuple[int, ...] | None] = {
    "COMPILED": (64, 128),
    "REQUIRED": (64, 128, 256),
    "OPTIONAL": None,
    "BROKEN": None,
}
THERE = ("COMPILED", "REQUIRED")
"""Backends that the device has, by what the engine's distribution requires."""


def takes(backend, block, head, dtype):
    heads = HEADS[backend]
    fits = heads is None or head in heads
    return fits and dtype != "float32" and any(block % size == 0 for size in SIZES[backend])


def expected(backends, block, head, dtype):
    """The kind of answer, and the backend in force, worked out from the table above."""
    able = [name for name in backends if name in THERE and takes(name, block, head, dtype)]
    if able:
        return "accepted", able[0]
    # BROKEN cannot even be loaded, so nobody knows what it takes; OPTIONAL is absent just so.
    return ("rejected", "") if set(backends) <= set(THERE) else ("undecided", "")


def said(outcome):
    if isinstance(outcome, Accepted):
        return "accepted", outcome.runtime["attention_backend"]
    return type(outcome).__name__.lower(), ""


def test_every_combination_of_backends_and_sizes(probe, model):
    lists = [*itertools.combinations(SIZES, 2), ("COMPILED",), ("REQUIRED",), ("OPTIONAL",), ("BROKEN",), tuple(SIZES)]
    table = [
        (backends, block, head, dtype)
        for backends in lists
        for block in (8, 16, 24, 40, 48)
        for head in (64, 256, 512)
        for dtype in ("bfloat16", "float32")
    ]
    questions = [
        Question(model(backends=list(backends), head_size=head, dtype=dtype), {"block_size": block})
        for backends, block, head, dtype in table
    ]
    outcomes = probe(use_cache=False, processes=1).answer(questions)
    wrong = [
        (row, said(outcome), expected(*row))
        for row, outcome in zip(table, outcomes, strict=True)
        if said(outcome) != expected(*row)
    ]
    assert wrong == []
    assert {said(outcome)[0] for outcome in outcomes} == {"accepted", "rejected", "undecided"}


def test_a_backend_whose_package_is_absent_does_not_hide_a_refusal(probe, model):
    outcome = probe().ask(Question(model(), {"block_size": 24}))
    assert isinstance(outcome, Rejected)
    assert (outcome.phase, outcome.kind, outcome.doubt) == ("worker", "rule", "")
    assert "COMPILED: [block_size not supported], REQUIRED: [block_size not supported]" in outcome.message
    assert outcome.origin.startswith("vllm/platforms/cuda.py:")
    assert outcome.resolved["cache.block_size"] == 24
    assert outcome.values == (Seen("cache.block_size", 24, default=False),)


def test_a_package_that_only_a_user_installs_is_not_presented(probe, model):
    outcome = probe().ask(Question(model(backends=["COMPILED", "OPTIONAL"]), {"block_size": 40}))
    assert isinstance(outcome, Undecided)
    assert "OPTIONAL (ModuleNotFoundError: No module named 'absent_optional_kernels')" in outcome.worker.because
    assert "COMPILED" not in outcome.worker.because


def test_what_is_presented_for_one_question_is_absent_in_the_next(probe, model):
    one = probe(use_cache=False, processes=1)
    wide, optional = model(head_size=256), model(head_size=256, backends=["OPTIONAL"])
    first = one.ask(Question(wide))
    assert isinstance(one.ask(Question(optional)), Undecided)
    assert one.ask(Question(wide)) == first
    assert said(first) == ("accepted", "REQUIRED")


# Two heads of 64 in two bytes, keys and values, four layers: 2048 bytes a token; 0.5 of the 80 GiB of the device.
TOKEN = 2 * 2 * 64 * 2 * 4
HALF = 40 << 30


def test_the_blocks_of_a_dense_model_are_counted(probe, model):
    outcome = probe().ask(Question(model(), {"block_size": 32}))
    assert isinstance(outcome, Accepted)
    assert outcome.capacity == Settled({"blocks_at_most": HALF // (TOKEN * 32)})


@pytest.mark.parametrize(("spare", "accepted"), [(0, True), (-1, False)])
def test_a_cache_that_is_a_byte_too_small_is_refused_for_want_of_blocks(probe, model, spare, accepted):
    size = TOKEN * 1024 + spare
    outcome = probe().ask(Question(model(), {"kv_cache_memory_bytes": size}))
    assert isinstance(outcome, Accepted if accepted else Rejected)
    if isinstance(outcome, Rejected):
        assert (outcome.phase, outcome.doubt) == ("capacity", "")
        assert outcome.message == f"{TOKEN * 1024} bytes of cache are needed, {size} are there"


def test_layers_that_keep_less_leave_the_capacity_open_and_nothing_else(probe, model):
    outcome = probe().ask(Question(model(sliding_window=128)))
    assert isinstance(outcome, Accepted)
    assert isinstance(outcome.capacity, NotKnown)
    assert parts_of(outcome).first_unknown == ("capacity", outcome.capacity.because)
    assert "sliding_window=128" in outcome.capacity.because


def test_a_planner_that_refuses_the_layers_is_a_worker_that_refuses_though_not_for_certain(probe, model):
    outcome = probe().ask(Question(model(planner="refuse")))
    assert isinstance(outcome, Rejected)
    assert (outcome.phase, outcome.message) == ("worker", "Failed to promote the layers to one type.")
    assert "stand in" in outcome.doubt


def test_a_planner_that_stumbles_over_what_stands_in_knows_nothing(probe, model):
    outcome = probe().ask(Question(model(planner="stumble")))
    assert isinstance(outcome, Accepted)
    assert outcome.capacity == NotKnown("AttributeError: a layer has no such attribute")
