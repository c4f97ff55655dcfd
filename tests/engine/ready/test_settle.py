"""Where the answers of the engines meet: what becomes of each field, whoever answers first, and of what cannot be."""

from dataclasses import dataclass, fields, replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from ready_answers import answer, any_value, hint_of, resolved, settled
from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.config.rules.examples import MODELS, example_model
from staticfire.engine.ready.errors import ReadyError
from staticfire.engine.ready.make import make_ready
from staticfire.engine.ready.merge import ADDED, AGREED, LEAST, RESOLVED
from staticfire.engine.ready.response import TABLE, Merge, decode, encode
from staticfire.engine.ready.settle import RUNTIME, settle
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.matrix.compare import every_combination
from staticfire.harness.matrix.matrix import load
from staticfire.harness.models import catalog

SOUND = sorted(name for name in MODELS if example_model(name).quant_method is None)
RESOLVED_CONFIG = resolved()


def at(config, path):
    """The value of a `section.field`."""
    section, _, field = path.partition(".")
    return getattr(getattr(config, section), field)


def but(response, **values):
    """The response with some fields changed."""
    return msgspec.structs.replace(response, **values)


def test_the_founding_fault_cannot_come_back():
    """The worker grows 16 to 80; a front end that went on showing 16 was how it all began."""
    found = settle(RESOLVED_CONFIG, [answer()])
    assert RESOLVED_CONFIG.cache.block_size == 16
    assert (found.config.runtime.block_size, found.config.runtime.mamba_block_size) == (80, 80)
    assert found.config.runtime.num_gpu_blocks > 0
    assert found.unreported == {}


@pytest.mark.parametrize("model", SOUND)
def test_the_front_end_has_what_the_engine_has(model):
    typed: dict[str, Any] = {"max_model_len": 512, "seed": 3}
    found = settle(resolved(model, **typed), [answer(0, model, **typed)])
    assert found.config == found.engines[0] == settled(model, **typed)


def test_the_front_end_has_what_the_engine_has_in_every_cell_of_the_matrix():
    cells = [cell for cell in every_combination(load("hybrid").document) if cell.verdict == "valid"]
    assert len(cells) > 1000
    models = {name: model_info(catalog.find(name).hf, name) for name in {cell.model for cell in cells}}
    for cell in cells:
        config = accept(cell.config, models[cell.model])
        engine = settle_worker(config)
        found = settle(config, [decode(encode(make_ready(engine, engine_index=0)))])
        assert found.config == found.engines[0] == engine, cell.id


def test_several_engines_add_up_and_keep_their_own():
    wide: dict[str, Any] = {"data_parallel_size": 2, "num_gpu_blocks_override": 100, "max_model_len": 400}
    narrow = {**wide, "num_gpu_blocks_override": 60}
    engines = [settled(**wide), settled(**narrow)]
    found = settle(resolved(**wide), [make_ready(engine, engine_index=i) for i, engine in enumerate(engines)])
    whole, parts = found.config.runtime, [engine.runtime for engine in engines]
    assert whole.num_gpu_blocks == 160
    assert whole.kv_cache_size_tokens == sum(part.kv_cache_size_tokens for part in parts)
    assert whole.kv_cache_max_concurrency == pytest.approx(sum(part.kv_cache_max_concurrency for part in parts))
    assert whole.block_size == 80
    assert found.config.model.max_model_len == 400
    assert found.engines[0].runtime == engines[0].runtime
    assert found.engines[1].runtime == engines[1].runtime


@pytest.mark.parametrize(("lengths", "smallest"), [((300, 200), 200), ((2048, 2048), 2048), ((5000, 6000), 2048)])
def test_the_shortest_engine_limits_what_is_admitted(lengths, smallest):
    """Never more than was resolved (the context of the model is 2048), whatever an engine says."""
    found = settle(RESOLVED_CONFIG, [but(answer(i), max_model_len=length) for i, length in enumerate(lengths)])
    for path in ("model.max_model_len", "scheduler.max_model_len", "runtime.max_model_len"):
        assert at(found.config, path) == smallest
        assert [at(found.engines[i], path) for i in (0, 1)] == list(lengths)


@pytest.mark.parametrize("name", AGREED)
def test_engines_that_disagree_are_named_with_their_values(name):
    values = {int: (16, 32), str: ("tcp://a:1", "tcp://b:2")}[str if name == "dp_stats_address" else int]
    answers = [but(answer(i), **{name: values[i == 1]}) for i in range(3)]
    with pytest.raises(ReadyError) as error:
        settle(RESOLVED_CONFIG, answers)
    message = str(error.value)
    assert message.startswith(f"{name}: ")
    assert f"engines 0 and 2 have {values[0]!r}, engine 1 has {values[1]!r}" in message


@pytest.mark.parametrize("name", RESOLVED)
def test_an_engine_that_runs_something_else_than_was_resolved_is_named(name):
    was = at(RESOLVED_CONFIG, TABLE[name].targets[0])
    other = {bool: not was, int: 7, str: "float16" if was != "float16" else "float32"}[type(was)]
    with pytest.raises(ReadyError) as error:
        settle(RESOLVED_CONFIG, [answer(0), but(answer(1), **{name: other})])
    assert str(error.value) == f"{name}: engine 1 has {other!r}, but {was!r} was resolved"


@pytest.mark.parametrize("name", ["mamba_block_size", "mamba_page_size_padded", "dp_stats_address"])
@pytest.mark.parametrize("late", [1, 0])
def test_none_never_erases_a_value(name, late):
    value = "tcp://a:1" if name == "dp_stats_address" else 1056
    found = settle(RESOLVED_CONFIG, [but(answer(i), **{name: None if i == late else value}) for i in (1, 0)])
    merged = found.dp_stats_address if name == "dp_stats_address" else at(found.config, f"runtime.{name}")
    assert merged == value
    if name != "dp_stats_address":
        assert [at(found.engines[i], f"runtime.{name}") for i in (late, 1 - late)] == [None, value]


def test_none_of_all_engines_is_none():
    """A dense model has no recurrent blocks, whatever the front end thought of."""
    found = settle(RESOLVED_CONFIG, [but(answer(i), mamba_block_size=None) for i in (0, 1)])
    assert RESOLVED_CONFIG.cache.mamba_block_size == 16
    assert found.config.runtime.mamba_block_size is None
    assert found.unreported == {}


@given(
    drawn=st.lists(
        st.fixed_dictionaries(
            {
                **{name: any_value(hint_of(name)) for name in (*ADDED, *LEAST)},
                "mamba_block_size": st.sampled_from([UNSET, None, 80]),
                "block_size": st.sampled_from([UNSET, 80]),
                "dp_stats_address": st.sampled_from([UNSET, None, "tcp://a:1"]),
                "dtype": st.sampled_from([UNSET, RESOLVED_CONFIG.model.dtype]),
                "data_parallel_rank": st.sampled_from([UNSET, None, 0, 1, 2]),
            }
        ),
        min_size=1,
        max_size=3,
    ),
    again=st.lists(st.integers(0, 2), max_size=3),
)
def test_neither_order_nor_repetition_matters(drawn, again):
    answers = [but(answer(i), **values) for i, values in enumerate(drawn)]
    found = settle(RESOLVED_CONFIG, answers)
    for order in permutations(answers):
        repeated = [*order, *(answers[i] for i in again if i < len(answers))]
        again_found = settle(RESOLVED_CONFIG, repeated)
        assert again_found == found
        assert list(again_found.engines) == list(again_found.versions) == sorted(found.engines)


def test_sums_and_messages_do_not_depend_on_who_answers_first():
    """Floating-point sums do, unless they are taken in one order."""
    parts = [0.1, 1e16, 1.0, 0.7]
    answers = [but(answer(i), kv_cache_max_concurrency=part, num_groups=i // 2) for i, part in enumerate(parts)]
    sums, messages = set(), set()
    for order in permutations(answers):
        sums.add(
            settle(RESOLVED_CONFIG, [but(one, num_groups=4) for one in order]).config.runtime.kv_cache_max_concurrency
        )
        with pytest.raises(ReadyError) as error:
            settle(RESOLVED_CONFIG, order)
        messages.add(str(error.value))
    assert len(sums) == len(messages) == 1


def test_an_engine_that_answers_again_replaces_its_answer():
    first, second = but(answer(0), num_gpu_blocks=10), but(answer(0), num_gpu_blocks=30)
    assert settle(RESOLVED_CONFIG, [first, answer(1), second]) == settle(RESOLVED_CONFIG, [second, answer(1)])


def test_nothing_that_is_passed_in_changes():
    before, given_ = resolved(), [answer(0), answer(1)]
    settle(before, given_)
    assert before == resolved()
    assert given_ == [answer(0), answer(1)]


def test_somebody_has_to_answer():
    with pytest.raises(ReadyError, match="no engine answered"):
        settle(RESOLVED_CONFIG, [])


STANDS_IN: dict[str, Any] = {
    "block_size": 16,
    "mamba_block_size": 16,
    "num_gpu_blocks": 50,
    "max_model_len": 400,
    "mamba_page_size_padded": None,
}
"""What was resolved, by hand; everything else that an engine does not report is 0."""


@pytest.mark.parametrize("path", RUNTIME)
def test_what_an_older_engine_leaves_out_is_as_resolved_and_said_to_be_so(path):
    typed: dict[str, Any] = {"num_gpu_blocks_override": 50, "max_model_len": 400}
    name = path.removeprefix("runtime.")
    raw = msgspec.msgpack.decode(encode(answer(0, **typed)))
    del raw[name]
    found = settle(resolved(**typed), [decode(msgspec.msgpack.encode(raw))])
    assert found.unreported == {0: (path,)}
    for config in (found.config, found.engines[0]):
        assert at(config, path) == STANDS_IN.get(name, 0)
        others = {p: at(config, p) for p in RUNTIME if p != path}
        assert others == {p: at(settled(**typed), p) for p in others}


def test_another_engine_speaks_for_one_that_does_not():
    found = settle(RESOLVED_CONFIG, [but(answer(0), block_size=UNSET), answer(1)])
    assert found.config.runtime.block_size == 80
    assert found.engines[0].runtime.block_size == 16
    assert found.unreported == {0: ("runtime.block_size",)}


def test_versions_ranks_and_the_address_travel():
    config = replace(settled(), parallel=replace(settled().parallel, data_parallel_rank=1))
    response = make_ready(config, engine_index=1, dp_stats_address="tcp://a:1")
    found = settle(RESOLVED_CONFIG, [but(answer(0), version=UNSET), response])
    assert found.dp_stats_address == "tcp://a:1"
    assert found.versions == {0: None, 1: response.version}
    assert [found.engines[i].parallel.data_parallel_rank for i in (0, 1)] == [None, 1]
    assert found.config.parallel.data_parallel_rank is None


NEEDED = sorted(
    {"cache.block_size", "cache.mamba_block_size", "cache.num_gpu_blocks_override", "device", "quantization", "load"}
    | {target for travels in TABLE.values() for target in travels.targets if not target.startswith("runtime.")}
)


def loose(config):
    """The configuration as a class of somebody else's, whose sections can lack fields."""

    class TheirConfig(SimpleNamespace):
        pass

    sections = {field.name: getattr(config, field.name) for field in fields(config)}
    for name in ("model", "cache", "scheduler", "parallel"):
        section = sections[name]
        sections[name] = SimpleNamespace(**{f.name: getattr(section, f.name) for f in fields(section)})
    return TheirConfig(**sections)


@pytest.mark.parametrize("path", NEEDED)
def test_a_front_end_of_another_class_that_lacks_a_field_is_told_which(path):
    config = loose(RESOLVED_CONFIG)
    section, _, field = path.rpartition(".")
    delattr(getattr(config, section) if section else config, field)
    with pytest.raises(ReadyError, match=rf"TheirConfig.*'{field}'"):
        settle(config, [answer()])


def test_a_section_that_cannot_be_copied_is_named():
    with pytest.raises(ReadyError, match="model, a SimpleNamespace, cannot take max_model_len=99"):
        settle(loose(RESOLVED_CONFIG), [but(answer(), max_model_len=99)])


def test_a_subclass_of_a_section_stays_itself():
    @dataclass(frozen=True)
    class Theirs(type(RESOLVED_CONFIG.scheduler)):  # type: ignore[misc]
        extra: int = 5

    section = RESOLVED_CONFIG.scheduler
    theirs = Theirs(**{field.name: getattr(section, field.name) for field in fields(section)})
    found = settle(replace(RESOLVED_CONFIG, scheduler=theirs), [but(answer(), max_model_len=99)])
    assert type(found.config.scheduler) is Theirs
    assert found.config.scheduler.max_model_len == 99


def test_every_merge_is_used():
    assert {travels.merge for travels in TABLE.values()} == set(Merge)
    assert isinstance(settle(RESOLVED_CONFIG, [answer()]).config, EngineConfig)
