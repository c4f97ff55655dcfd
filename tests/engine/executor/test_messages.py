"""What goes to the ranks and back is what comes out at the other end."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.errors import EngineError, WireError
from staticfire.engine.executor.limits import LONGEST, START, STEP, Limits
from staticfire.engine.executor.messages import (
    Answer,
    AskView,
    Failed,
    Forget,
    FromRank,
    Holds,
    Reached,
    Setup,
    Step,
    StepFailed,
    ToRank,
    decode,
    encode,
)
from staticfire.engine.executor.steps import StepReader, StepWriter
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import (
    ScheduledChunk,
    SchedulerOutput,
    StateCopy,
    StepOutput,
    TokenLogprobs,
)
from staticfire.engine.wire.messages import Fault

IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
TOKENS = st.integers(0, 2**40)
FLOATS = st.floats(allow_nan=False)
PARAMS = st.builds(
    SamplingParams,
    temperature=st.floats(0, 10),
    top_p=st.floats(0, 1, exclude_min=True),
    top_k=st.integers(0, 99),
    max_tokens=st.integers(1, 99),
    ignore_eos=st.booleans(),
    stop_token_ids=st.lists(TOKENS, max_size=2).map(tuple),
    seed=st.none() | st.integers(-(2**80), 2**80),
    logprobs=st.none() | st.integers(0, 9),
    prompt_logprobs=st.none() | st.integers(0, 9),
    forced_token_ids=st.none() | st.lists(TOKENS, min_size=1, max_size=3).map(tuple),
    priority=st.integers(-9, 9),
)
CHUNKS = st.builds(
    ScheduledChunk,
    request_id=IDS,
    token_ids=st.lists(TOKENS, max_size=3),
    start=TOKENS,
    block_ids=st.lists(st.lists(TOKENS, max_size=3), max_size=3).map(tuple),
    state_blocks=st.lists(TOKENS, max_size=2).map(tuple),
    samples=st.booleans(),
    sampling_params=PARAMS,
    num_prompt_tokens=TOKENS,
    hit_tokens=TOKENS,
)
STEPS = st.builds(
    SchedulerOutput,
    step=TOKENS,
    chunks=st.lists(CHUNKS, max_size=3, unique_by=lambda chunk: chunk.request_id).map(tuple),
    state_copies=st.lists(st.builds(StateCopy, TOKENS, TOKENS, TOKENS), max_size=2).map(tuple),
    zero_blocks=st.lists(TOKENS, max_size=2).map(tuple),
    preempted=st.lists(IDS, max_size=2).map(tuple),
    finished=st.lists(IDS, max_size=2).map(tuple),
)
LOGPROBS = st.builds(TokenLogprobs, TOKENS, FLOATS, TOKENS, st.lists(st.tuples(TOKENS, FLOATS), max_size=2).map(tuple))
OUTPUTS = st.builds(
    StepOutput,
    sampled=st.dictionaries(IDS, TOKENS, max_size=3),
    logprobs=st.dictionaries(IDS, LOGPROBS, max_size=3),
    prompt_logprobs=st.dictionaries(IDS, st.lists(LOGPROBS, max_size=2), max_size=2),
)
FAULTS = st.builds(Fault, IDS, IDS, IDS)
MESSAGES = (
    st.builds(Reached, st.sampled_from(["imported", "joined", "loaded", "aligned", "ready"]), st.binary(max_size=9))
    | st.builds(Answer, TOKENS, st.none() | OUTPUTS)
    | st.builds(StepFailed, TOKENS, FAULTS)
    | st.builds(Failed, FAULTS)
    | st.builds(Holds, st.dictionaries(IDS, st.none() | st.booleans() | FLOATS | IDS | st.integers(-9, 2**60)))
)


@given(st.lists(st.tuples(STEPS, st.booleans()), max_size=4))
def test_a_run_of_steps_round_trips(run: list[tuple[SchedulerOutput, bool]]):
    """Ids come and go, with the same parameters or others, and the writer may be told to forget."""
    writer, reader = StepWriter(), StepReader()
    for number, (step, forget) in enumerate(run, start=1):
        if forget:
            writer.forget()
        message = decode(encode(writer.write(step)), ToRank)
        assert isinstance(message, Step)
        assert message.number == number
        assert reader.read(message) == step


@given(MESSAGES)
def test_what_ranks_say_round_trips(message: FromRank):
    assert decode(encode(message), FromRank) == message


def chunk(name: str, start: int, params: SamplingParams) -> ScheduledChunk:
    return ScheduledChunk(name, [7], start, ([1, 2],), (3,), True, params, 4)


def test_parameters_travel_once_a_request():
    writer, params = StepWriter(), SamplingParams(stop_token_ids=tuple(range(100)))
    first = writer.write(SchedulerOutput(0, (chunk("a", 4, params),)))
    second = writer.write(SchedulerOutput(1, (chunk("a", 5, params),)))
    assert len(first.chunks[0].sampling_params) > 100
    assert second.chunks[0].sampling_params == b""
    # The same id as another request: equal parameters or not, they travel.
    writer.write(SchedulerOutput(2, (), finished=("a",)))
    assert writer.write(SchedulerOutput(3, (chunk("a", 4, params),))).chunks[0].sampling_params
    other = SamplingParams(stop_token_ids=tuple(range(100)))
    assert writer.write(SchedulerOutput(4, (chunk("a", 5, other),))).chunks[0].sampling_params


def test_nothing_is_kept_of_requests_that_ended():
    writer, reader, params = StepWriter(), StepReader(), SamplingParams()
    for number in range(50):
        step = SchedulerOutput(number, (chunk(str(number), 0, params),), finished=(str(number - 1),))
        reader.read(writer.write(step))
    assert list(writer._sent) == list(reader._known) == ["49"]


def test_a_decode_step_of_16_requests_is_small():
    """With three groups and ten blocks each: below a page, so that one write carries it."""
    writer, params = StepWriter(), SamplingParams()
    tables = (list(range(300, 310)),) * 3
    chunks = tuple(ScheduledChunk(str(n), [9999], 5000, tables, (7, 8), True, params, 64) for n in range(16))
    writer.write(SchedulerOutput(0, chunks))
    assert len(encode(writer.write(SchedulerOutput(1, chunks)))) < 4096


@given(st.binary(max_size=60))
def test_garbage_is_refused(data: bytes):
    """Or, by chance, is a message; anything but a `WireError` fails."""
    for kinds in (Setup, ToRank, FromRank):
        with contextlib.suppress(WireError):
            decode(data, kinds)


@given(STEPS, st.data())
def test_a_message_cut_short_is_refused(step: SchedulerOutput, data: st.DataObject):
    whole = encode(StepWriter().write(step))
    with pytest.raises(WireError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))], ToRank)


def test_small_messages_to_ranks():
    assert decode(encode(Forget()), ToRank) == Forget()
    assert decode(encode(AskView()), ToRank) == AskView()


def test_limits_come_from_the_environment():
    assert Limits.from_environment({}) == Limits(600, 300)
    assert Limits.from_environment({START: "5", STEP: "0.5"}) == Limits(5, 0.5)


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "nan", "inf", str(2 * LONGEST)])
def test_a_limit_that_is_none_is_refused(text: str):
    with pytest.raises(EngineError, match=f"{STEP}={text!r}: must be a number of seconds above 0"):
        Limits.from_environment({STEP: text})
