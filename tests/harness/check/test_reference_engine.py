"""The reference engine as a check asks it: its limits are nobody's fault, and it reads command lines as vLLM does."""

import json

import pytest

from staticfire.harness.check.engines import Asked
from staticfire.harness.check.question import Question, UnknownModel
from staticfire.harness.check.reference_engine import ReferenceEngine
from staticfire.harness.errors import InputError
from staticfire.harness.probe.base import BEYOND, Accepted, Crashed, Rejected


@pytest.fixture
def engine():
    return ReferenceEngine(Asked("h100-80gb"))


def ask(engine, model="jamba-tiny", entry="LLM", **arguments):
    (answer,) = engine.ask([Question(model, arguments, entry)])
    return answer


@pytest.mark.parametrize(
    "typed",
    [
        {"pipeline_parallel_size": 2},
        {"mamba_cache_mode": "all"},
        {"quantization": "gptq"},
        {"kv_cache_dtype": "fp8"},
        {"speculative_config": {"model": "x", "num_speculative_tokens": 2}},
    ],
)
def test_what_only_this_engine_lacks_is_no_refusal(engine, typed):
    answer = ask(engine, **typed)
    assert isinstance(answer, Crashed)
    assert answer.detail.startswith(f"{BEYOND}: ")
    assert answer.lasting


def test_a_fault_beside_a_limit_is_told_without_the_limit(engine):
    answer = ask(engine, quantization="gptq", enable_chunked_prefill=False, enable_prefix_caching=True)
    assert isinstance(answer, Rejected)
    assert "SF101" in answer.rules
    assert not any(rule.startswith("SF5") for rule in answer.rules)
    assert "gptq" not in answer.message


@pytest.mark.parametrize(("text", "length"), [("4k", 4000), ("4K", 4096), ("1.5k", 1500)])
def test_lengths_of_a_command_line_are_read_as_the_parser_of_vllm_reads_them(engine, text, length):
    answer = ask(engine, "llama-3.1-8b", "serve", max_model_len=text)
    assert isinstance(answer, Accepted)
    assert answer.resolved["model.max_model_len"] == length
    assert isinstance(ask(engine, "llama-3.1-8b", "LLM", max_model_len=text), Rejected)


@pytest.mark.parametrize(("entry", "typed"), [("LLM", -1), ("serve", "auto"), ("serve", "-1")])
def test_a_length_that_is_to_be_fitted_is_accepted(engine, entry, typed):
    answer = ask(engine, "llama-3.1-8b", entry, max_model_len=typed)
    assert isinstance(answer, Accepted)
    assert answer.runtime["max_model_len"] == answer.resolved["model.max_model_len"] == 131072


@pytest.mark.parametrize("text", ["1.5K", "four", "4x"])
def test_what_that_parser_refuses_is_refused(engine, text):
    assert isinstance(ask(engine, "llama-3.1-8b", "serve", max_model_len=text), Rejected)


def test_a_configuration_supplied_by_the_user_that_cannot_be_used_ends_the_run_and_all_are_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("[1]")
    (tmp_path / "c" / "config.json").mkdir(parents=True)
    (tmp_path / "d.json").symlink_to(tmp_path / "gone.json")
    engine = ReferenceEngine(Asked("h100-80gb", model_configs=tmp_path))
    with pytest.raises(InputError) as caught:
        engine.ask([Question(f"org/{name}", {}) for name in "aabcd"])
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        str(tmp_path / name) for name in ("a.json", "b.json", "c/config.json", "d.json")
    ]
    assert "is not JSON" in lines[0]
    assert "must be a JSON object, got list" in lines[1]
    assert "is a folder, not a file" in lines[2]
    assert "is a link to" in lines[3]


@pytest.mark.parametrize("text", ["{", "[]", '{"architectures": "JambaForCausalLM"}', '{"model_type": 3}'])
def test_a_broken_configuration_in_a_local_folder_is_named_with_its_fault(engine, tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    answer = ask(engine, str(tmp_path))
    assert isinstance(answer, UnknownModel)
    assert answer.fault.startswith(f"{tmp_path}/config.json: ")


def test_a_model_of_no_family_of_ours_is_a_limit_and_one_that_lacks_something_is_broken(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"model_type": "gpt9", "architectures": ["Gpt9ForCausalLM"]}))
    (tmp_path / "b.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    engine = ReferenceEngine(Asked("h100-80gb", model_configs=tmp_path))
    assert isinstance(ask(engine, "org/a"), Crashed)
    answer = ask(engine, "org/b")
    assert isinstance(answer, UnknownModel)
    assert str(tmp_path / "b.json") in answer.fault


def test_every_keyword_that_it_knows_can_be_named_and_no_other(engine):
    known = engine.keywords(Question("jamba-tiny", {}))
    assert {"max_model_len", "enable_chunked_prefill", "tensor_parallel_size"} <= known
    for keyword in [*sorted(known)[::9], "max_modl_len"]:
        answer = ask(engine, **{keyword: None})
        refused = isinstance(answer, Rejected) and "is no configuration keyword" in answer.message
        assert refused is (keyword not in known)
