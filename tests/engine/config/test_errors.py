"""Field errors: named, all at once, and together with the broken rules."""

import pickle

import pytest

from staticfire.engine.config import ConfigError, accept, resolve
from staticfire.engine.config.rules.examples import example_model
from staticfire.engine.errors import EngineError

JAMBA = example_model("jamba")


def refused(typed):
    with pytest.raises(ConfigError) as caught:
        resolve(typed, JAMBA)
    return {fault.field: fault for fault in caught.value.faults}


def test_unknown_keywords_name_the_nearest():
    faults = refused({"blok_size": 16, "enforce_eagre": True})
    assert "did you mean 'block_size'?" in faults["blok_size"].message
    assert "did you mean 'enforce_eager'?" in faults["enforce_eagre"].message
    assert faults["blok_size"].type == "unknown-option"


def test_an_unset_unknown_keyword_is_still_unknown():
    assert "blok_size" in refused({"blok_size": None})


@pytest.mark.parametrize(
    "typed",
    [
        {"block_size": 0},
        {"block_size": -16},
        {"block_size": "16"},
        {"block_size": 16.0},
        {"block_size": True},
        {"enable_prefix_caching": 1},
        {"mamba_cache_mode": "aligned"},
        {"gpu_memory_utilization": 1.5},
        {"num_gpu_blocks_override": 1},
        {"max_num_seqs": 0},
        {"seed": -1},
        {"dtype": "float8"},
        {"max_model_len": -2},
        {"long_prefill_token_threshold": -1},
    ],
    ids=str,
)
def test_values_of_the_wrong_kind(typed):
    [name] = typed
    message = refused(typed)[name].message
    assert name in message
    assert repr(typed[name]) in message


def test_names_get_their_nearest():
    assert "did you mean 'experts_int8'?" in refused({"quantization": "expert_int8"})["quantization"].message
    assert "none, align, all" in refused({"mamba_cache_mode": "x"})["mamba_cache_mode"].message


def test_field_errors_and_rules_stand_together():
    with pytest.raises(ConfigError) as caught:
        resolve({"blok_size": 1, "max_num_seqs": "4", "enable_chunked_prefill": False}, JAMBA)
    error = caught.value
    assert isinstance(error, EngineError)
    entries = error.errors()
    assert [entry["type"] for entry in entries] == ["unknown-option", "int_type", "align-without-chunked-prefill"]
    assert entries[2]["code"] == "SF101"
    assert entries[2]["loc"] == ("cache", "mamba_cache_mode")
    text = str(error)
    assert "3 faults" in text
    assert "mamba_cache_mode=align: derived, because the model is hybrid and prefix caching is on" in text


def test_accept_refuses_with_every_rule():
    with pytest.raises(ConfigError) as caught:
        accept({"enable_chunked_prefill": False, "quantization": "fp8"}, JAMBA)
    assert [fault.type for fault in caught.value.faults] == [
        "align-without-chunked-prefill",
        "quantization-not-supported",
    ]


def test_running_asks_for_more_than_acceptance():
    qwen = example_model("qwen3-next")
    typed = {"tensor_parallel_size": 2, "enable_expert_parallel": True, "kv_cache_dtype": "fp8"}
    assert accept(typed, qwen).parallel.tensor_parallel_size == 2
    with pytest.raises(ConfigError) as caught:
        accept(typed, qwen, for_running=True)
    types = [fault.type for fault in caught.value.faults]
    assert types == ["family-not-runnable", "layout-not-runnable", "kv-dtype-not-runnable"]
    assert accept({}, JAMBA, for_running=True).model.model == "jamba"


def test_the_error_crosses_process_borders():
    with pytest.raises(ConfigError) as caught:
        accept({"enable_chunked_prefill": False}, JAMBA)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.faults == caught.value.faults
    assert str(again) == str(caught.value)


def test_none_means_not_typed():
    assert resolve({"block_size": None, "enforce_eager": None}, JAMBA) == resolve({}, JAMBA)
