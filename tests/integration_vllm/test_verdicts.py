"""What three releases of vLLM say about the configurations that set this project off, word for word."""

import pytest

from staticfire.harness.probe.base import Accepted, Crashed, Rejected

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

FOUNDING = {"enable_chunked_prefill": False, "quantization": "experts_int8"}
REFUSED = [
    ("0.28.0", "Chunked prefill is required for mamba cache mode 'align'."),
    ("0.33.0", "Chunked prefill is required for Mamba prefix caching."),
]
ALL = ["0.27.1", "0.28.0", "0.33.0"]


@pytest.mark.parametrize(("version", "message"), REFUSED)
def test_the_founding_configuration_is_refused_in_the_engines_own_words(open_probe, question, version, message):
    outcome = open_probe(version).ask(question("jamba-v0.1", **FOUNDING))
    assert isinstance(outcome, Rejected)
    assert (outcome.message, outcome.kind, outcome.phase) == (message, "rule", "front end")
    assert outcome.origin.startswith("vllm/model_executor/models/config.py:")


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_a_refusal_names_the_values_that_the_engine_looked_at(open_probe, question, version):
    outcome = open_probe(version).ask(question("jamba-v0.1", **FOUNDING))
    assert isinstance(outcome, Rejected)
    looked_at = {seen.field: (seen.value, seen.default) for seen in outcome.values}
    assert looked_at["cache.enable_prefix_caching"] == (True, True)
    assert looked_at["scheduler.enable_chunked_prefill"] == (False, False)
    if version == "0.28.0":
        assert looked_at["cache.mamba_cache_mode"] == ("align", False)


def test_the_release_before_accepts_it(open_probe, question):
    outcome = open_probe("0.27.1").ask(question("jamba-v0.1", **FOUNDING))
    assert isinstance(outcome, Accepted)
    assert outcome.resolved["cache.mamba_cache_mode"] == "none"
    assert outcome.resolved["cache.enable_prefix_caching"] is False


@pytest.mark.parametrize(
    ("version", "caching", "mode"), [("0.27.1", False, "none"), ("0.28.0", True, "align"), ("0.33.0", True, "align")]
)
def test_the_defaults_of_a_hybrid_model(open_probe, question, version, caching, mode):
    outcome = open_probe(version).ask(question("jamba-v0.1"))
    assert isinstance(outcome, Accepted)
    assert outcome.resolved["cache.enable_prefix_caching"] is caching
    assert outcome.resolved["cache.mamba_cache_mode"] == mode


@pytest.mark.parametrize(("version", "message"), REFUSED)
@pytest.mark.parametrize("entry", ["EngineArgs", "LLM", "serve"])
def test_every_entry_point_refuses(open_probe, question, version, message, entry):
    argv = ("--no-enable-chunked-prefill", "--quantization", "experts_int8") if entry == "serve" else None
    asked = question("jamba-v0.1", entry, argv, **({} if argv else FOUNDING))
    outcome = open_probe(version).ask(asked)
    assert isinstance(outcome, Rejected)
    assert outcome.message == message


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("entry", ["EngineArgs", "LLM"])
def test_an_unknown_keyword_is_a_fault_of_a_field(open_probe, question, version, entry):
    outcome = open_probe(version).ask(question("jamba-v0.1", entry, enable_chunked_prefil=False))
    assert isinstance(outcome, Rejected)
    assert outcome.kind == "field"
    assert "enable_chunked_prefil" in outcome.message


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--max-num-seqs", "four"), "invalid int value: 'four'"),
        (("--no-such-flag",), "unrecognized arguments: --no-such-flag"),
    ],
)
def test_the_command_line_is_parsed_by_the_engines_own_parser(open_probe, question, version, argv, words):
    outcome = open_probe(version).ask(question("jamba-v0.1", "serve", argv))
    assert isinstance(outcome, Rejected)
    assert outcome.kind == "field"
    assert words in outcome.message


@pytest.mark.parametrize("version", ALL)
def test_a_fault_of_the_model_and_the_number_of_ranks_is_found_and_one_of_this_machine_is_not(
    open_probe, question, version
):
    probe = open_probe(version)
    uneven = probe.ask(question("jamba-v0.1", tensor_parallel_size=3))
    assert isinstance(uneven, Rejected)
    assert "must be divisible by tensor parallel size (3)" in uneven.message
    assert isinstance(probe.ask(question("jamba-v0.1", tensor_parallel_size=8)), Accepted)
    assert isinstance(probe.ask(question("jamba-v0.1", tensor_parallel_size=16)), Accepted)


@pytest.mark.parametrize("version", ALL)
def test_what_needs_the_network_is_no_refusal(open_probe, question, version):
    asked = question("jamba-v0.1", speculative_config={"model": "nobody/no-such-draft", "num_speculative_tokens": 2})
    assert isinstance(open_probe(version).ask(asked), Crashed)


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_disabling_what_the_model_supports_is_noted(open_probe, question, version):
    outcome = open_probe(version).ask(question("llama-3.1-8b", enable_chunked_prefill=False))
    assert isinstance(outcome, Accepted)
    assert any("does not officially support disabling chunked prefill" in note.message for note in outcome.notes)


def test_an_ignored_flag_is_noted_with_where_it_is_said(open_probe, question):
    outcome = open_probe("0.33.0").ask(question("jamba-v0.1", mamba_cache_mode="align"))
    assert isinstance(outcome, Accepted)
    (note,) = [
        note for note in outcome.notes if "mamba_cache_mode" in note.message or "mamba-cache-mode" in note.message
    ]
    assert note.origin.startswith("vllm/engine/arg_utils.py:")


@pytest.mark.parametrize("version", ALL)
def test_more_sequences_than_cache_blocks_are_refused_at_start_up(open_probe, question, version):
    # 60,293 blocks of 4 layers x 327,680 bytes fit 92 % of 80 GiB; the message comes from the engine.
    asked = question("jamba-v0.1", max_num_seqs=100_000, max_num_batched_tokens=100_000)
    outcome = open_probe(version).ask(asked)
    assert isinstance(outcome, Rejected)
    assert outcome.phase == "capacity"
    assert "max_num_seqs (100000) exceeds available Mamba cache blocks" in outcome.message
    assert isinstance(open_probe(version).ask(question("jamba-v0.1", max_num_seqs=1024)), Accepted)


@pytest.mark.parametrize(
    ("device", "dtype", "accepted"), [("l4", "bfloat16", True), ("cpu", "bfloat16", True), ("mi300x", "bfloat16", True)]
)
@pytest.mark.parametrize("version", ALL)
def test_every_kind_of_device_can_be_presented(open_probe, question, version, device, dtype, accepted):
    outcome = open_probe(version, device).ask(question("jamba-v0.1", dtype=dtype))
    assert isinstance(outcome, Accepted) is accepted
