"""What is drawn, how it is shrunk, and the table of what is explained."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.config.draft import KEYWORD_OF
from staticfire.engine.config.options import KNOWN
from staticfire.engine.config.reader import model_info
from staticfire.engine.config.release import RELEASES, VLLM_RELEASES
from staticfire.engine.config.rules.registry import BY_CODE
from staticfire.engine.config.typed import CHOICES, Typed, read_typed
from staticfire.harness.check import engine_args
from staticfire.harness.differential.axes import shared
from staticfire.harness.differential.base import Answer, Case, Disagreement, Opinion
from staticfire.harness.differential.compare import compare
from staticfire.harness.differential.draw import draw
from staticfire.harness.differential.explained import parse, table
from staticfire.harness.differential.group import shrunk
from staticfire.harness.differential.ours import Ours
from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog, devices

NAMED = [
    *("block_size", "mamba_block_size", "mamba_cache_mode", "enable_prefix_caching", "enable_chunked_prefill"),
    *("max_model_len", "max_num_batched_tokens", "max_num_seqs", "dtype", "kv_cache_dtype", "mamba_cache_dtype"),
    *("mamba_ssm_cache_dtype", "quantization", "tensor_parallel_size", "pipeline_parallel_size"),
    *("data_parallel_size", "num_gpu_blocks_override", "kv_cache_memory_bytes", "speculative_config"),
]
H100, NEWEST = devices.find("h100-80gb"), VLLM_RELEASES[-1]
MODELS = {name: model_info(catalog.load(name).config, name) for name in catalog.names()}


def drawn(examples=800, seed=0, keywords=frozenset((*Typed.model_fields, *KNOWN))):
    return list(draw(shared(keywords), MODELS, H100, NEWEST, examples=examples, seed=seed))


def test_the_keywords_are_those_that_both_know():
    axes = shared({"block_size", "enforce_eager", "no_such_keyword", "hf_overrides"})
    assert {axis.name: axis.kind for axis in axes.drawn} == {"block_size": "integer", "enforce_eager": "option"}
    assert axes.left_out == ("hf_overrides",)


def test_keywords_that_only_a_server_has_are_not_drawn(tmp_path):
    (tmp_path / "engine").mkdir()
    source = (
        "class EngineArgs:\n    block_size: int\n\nclass AsyncEngineArgs(EngineArgs):\n    enable_log_requests: bool\n"
    )
    (tmp_path / "engine" / "arg_utils.py").write_text(source)
    assert engine_args.names(tmp_path, offline=True) == {"block_size"}
    assert engine_args.names(tmp_path) == {"block_size", "enable_log_requests"}


def test_every_keyword_that_matters_is_drawn():
    counts = Counter(name for case in drawn() for name in case.typed)
    assert set(NAMED) <= set(counts)
    assert min(counts[name] for name in NAMED if name != "speculative_config") > 20
    assert {case.model for case in drawn()} == set(MODELS)


def test_what_is_drawn_is_what_a_user_may_type():
    for case in drawn(200):
        faults = read_typed(case.typed)[2]
        assert {fault.type for fault in faults} <= {"greater_than", "less_than_equal"}


def test_most_names_are_those_that_our_rules_judge():
    counts = Counter(case.typed["quantization"] for case in drawn() if "quantization" in case.typed)
    assert counts["experts_int8"] > sum(counts.values()) / 2
    assert len(counts) > 3
    assert set(counts) <= set(CHOICES["quantization"])


def test_numbers_lie_beside_those_that_decide():
    context = {name: model.max_position_embeddings for name, model in MODELS.items()}
    lengths = [
        (case.typed["max_model_len"], context[case.model]) for case in drawn(3000) if "max_model_len" in case.typed
    ]
    assert any(length == most for length, most in lengths)
    assert any(length == most + 1 for length, most in lengths)
    assert any(length == -1 for length, _ in lengths)


def test_no_more_ranks_are_drawn_than_an_engine_lays_out_in_a_moment():
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    assert max(case.typed.get(name, 1) for case in drawn(3000) for name in sizes) == 256


def test_all_are_different_and_a_seed_repeats_them():
    assert len({case.key for case in drawn(500)}) == 500
    assert drawn(100) == drawn(100)
    assert drawn(100, seed=1) != drawn(100)


@given(
    st.sets(st.sampled_from("abcdefg"), min_size=1, max_size=4),
    st.sets(st.sampled_from("abcdefg")),
)
def test_a_disagreement_is_shrunk_to_exactly_what_it_needs(needed, others):
    def ask(cases):
        return [[found(case)] if needed <= set(case.typed) else [] for case in cases]

    def found(case):
        return Disagreement(case, "theirs refuses", "configuration", "here", "accepted", "no")

    start = Case("llama-tiny", dict.fromkeys(sorted(needed | others), 1))
    (group,) = shrunk([[found(start)]], ask)
    assert set(group.example.case.typed) == needed
    assert (group.members, group.models) == (1, ("llama-tiny",))


def test_shrinking_does_not_change_over_to_another_cause():
    def ask(cases):
        return [
            [Disagreement(case, "theirs refuses", "configuration", "other" if len(case.typed) < 2 else "here", "", "")]
            for case in cases
        ]

    start = Case("llama-tiny", {"a": 1, "b": 2, "c": 3})
    (group,) = shrunk([list(ask([start])[0])], ask)
    assert group.example.because == "here"
    assert len(group.example.case.typed) == 2


VERDICTS = st.sampled_from(["accepted", "refused", "not known"])


@given(VERDICTS, VERDICTS, VERDICTS, VERDICTS)
def test_nothing_but_two_equal_known_verdicts_is_a_match(ours, theirs, our_room, their_room):
    def opinion(verdict):
        reasons = (("SF101", "why"),) if verdict == "refused" else ()
        return Opinion(verdict, "because", "why", reasons)

    found = compare(
        Case("llama-tiny", {}), Answer(opinion(ours), opinion(our_room)), Answer(opinion(theirs), opinion(their_room))
    )
    if "not known" in (ours, theirs):
        assert found.configuration == "not known"
        assert found.unknown
    else:
        assert found.configuration == (ours if ours == theirs else "differs")
    if found.configuration == "accepted":
        known = "not known" not in (our_room, their_room)
        assert (found.capacity == "not known") == (not known)
        assert (found.capacity == "differs") == (known and our_room != their_room)
    else:
        assert found.capacity == "not asked"
    assert bool(found.disagreements) == ("differs" in (found.configuration, found.capacity))


def test_weights_that_the_engine_cannot_weigh_are_not_known():
    ours = Answer(Opinion("accepted"), Opinion("refused", reasons=(("SF106", "heavy"),)))
    theirs = Answer(Opinion("accepted"), Opinion("accepted", blind="nothing was weighed"))
    found = compare(Case("llama-tiny", {}), ours, theirs)
    assert (found.capacity, found.unknown) == ("not known", (("capacity", "theirs", "nothing was weighed"),))


def test_guessed_tokens_are_compared_by_what_they_make_of_the_state_though_no_verdict_is_known():
    typed = {"speculative_config": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}}
    case = Case("nemotron-h-8b", typed)
    ours = Ours(MODELS, H100, NEWEST).answer(case)
    assert ours.configuration.verdict == "not known"
    assert ours.values["runtime.block_size"] > 1040
    accepted = Opinion("accepted")
    found = compare(case, ours, Answer(accepted, accepted, {"runtime.block_size": 1040}))
    assert (found.configuration, [one.because for one in found.disagreements]) == ("not known", ["runtime.block_size"])
    lora = Ours(MODELS, H100, NEWEST).answer(Case("nemotron-h-8b", {**typed, "enable_lora": True}))
    assert lora.values == {}


def test_of_a_model_that_a_generic_class_runs_nothing_is_known_whatever_else_is_broken():
    case = Case("bamba-9b", {"enable_chunked_prefill": False})
    assert Ours(MODELS, H100, NEWEST).answer(case).configuration.verdict == "not known"
    assert Ours(MODELS, H100, VLLM_RELEASES[1]).answer(case).configuration.verdict == "refused"


def test_every_row_of_the_table_can_apply():
    rows = table()
    known = {*KEYWORD_OF.values(), *Typed.model_fields, *KNOWN}
    for row in rows:
        assert set(row.engines) <= set(RELEASES), row.name
        assert set(row.devices) <= set(devices.names()), row.name
        assert set(row.models) <= set(catalog.names()), row.name
        assert set(row.when) <= known, row.name
        assert row.reason.endswith("."), row.name
        if row.kind == "ours refuses":
            assert {one for one in row.because if ": " not in one} <= set(BY_CODE), row.name
        if row.kind == "theirs refuses":
            assert all(re.fullmatch(r"vllm/[\w/]+\.py|pydantic", origin) for origin in row.because), row.name


GOOD = """
[[row]]
name = "a"
engines = ["vllm==0.33.0"]
kind = "ours refuses"
because = ["SF308"]
reason = "It is stricter."
"""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD.replace('["SF308"]', '"SF308"'), "row 1: because must be a list"),
        (GOOD + "whem = {}\n", "row 1: unknown key 'whem'. Did you mean 'when'"),
        (GOOD.replace("ours refuses", "ours"), "kind must be one of ours refuses, theirs refuses, values differ"),
        (GOOD.replace('reason = "It is stricter."', ""), "row 1: reason is missing"),
        (GOOD + 'says = "("\n', "says is no regular expression"),
        (GOOD + GOOD, "two rows are named 'a'"),
        ("[[row", "somewhere.toml: "),
    ],
)
def test_faults_of_a_table_are_said(text, fault):
    with pytest.raises(InputError, match=re.escape(fault)):
        parse(text, "somewhere.toml")
    assert parse(GOOD, "somewhere.toml")[0].because == ("SF308",)
