"""What each family's `config.json` is read as, and what a broken one is told."""

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.config import ConfigError, model_info, resolve
from staticfire.engine.config.families.registry import BY_MODEL_TYPE, FAMILIES
from staticfire.engine.config.rules.examples import MODELS, example_model


def kinds(model):
    return Counter(layer.mixer for layer in model.layers)


def test_jamba_layers_follow_two_periods():
    model = example_model("jamba")
    assert [layer.mixer for layer in model.layers] == ["mamba1", "mamba1", "attention", "mamba1"]
    assert [layer.mlp for layer in model.layers] == ["dense", "moe", "dense", "moe"]
    assert model.attention_layers == (2,)
    assert model.recurrent_layers == (0, 1, 3)
    assert model.is_hybrid
    assert model.recurrent_kind == "mamba1"
    assert (model.num_experts, model.num_experts_per_tok) == (4, 2)


def test_one_expert_means_dense():
    model = model_info({**MODELS["jamba"], "num_experts": 1}, "dense")
    assert {layer.mlp for layer in model.layers} == {"dense"}
    assert (model.num_experts, model.expert_parameters) == (0, 0)


def test_bamba_lists_its_attention_layers():
    model = example_model("bamba")
    assert model.attention_layers == (2,)
    assert model.recurrent_kind == "mamba2"


def test_qwen3_next_attends_every_fourth_layer():
    model = model_info({**MODELS["qwen3-next"], "num_hidden_layers": 12}, "qwen")
    assert model.attention_layers == (3, 7, 11)
    assert kinds(model) == {"gated_delta_net": 9, "attention": 3}
    dense_step = model_info({**MODELS["qwen3-next"], "mlp_only_layers": [0], "decoder_sparse_step": 2}, "qwen")
    assert [layer.mlp for layer in dense_step.layers] == ["dense", "moe", "dense", "moe"]


def test_listed_layer_types_win_over_the_interval():
    listed = ["full_attention", "linear_attention", "linear_attention", "linear_attention"]
    assert model_info({**MODELS["qwen3-next"], "layer_types": listed}, "qwen").attention_layers == (0,)


def test_a_nested_text_config_is_read_in_place_of_the_outer_one():
    text = {**MODELS["qwen3-next"], "model_type": "qwen3_5_moe_text", "mamba_ssm_dtype": "float32"}
    outer = {"model_type": "qwen3_5_moe", "architectures": ["Qwen3_5MoeForConditionalGeneration"], "text_config": text}
    model = model_info(outer, "qwen3.6")
    assert model.architecture == "Qwen3_5MoeForConditionalGeneration"
    assert model.ssm_dtype == "float32"
    assert model.hidden_size == 64
    assert model.hf is outer


def test_nemotron_reads_one_letter_a_layer_and_wants_wide_states():
    hf = {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "M-M*E",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "n_groups": 2,
        "ssm_state_size": 16,
        "n_routed_experts": 4,
        "moe_intermediate_size": 32,
        "vocab_size": 512,
    }
    model = model_info(hf, "nemotron")
    assert [layer.mixer for layer in model.layers] == ["mamba2", "none", "mamba2", "attention", "none"]
    assert [layer.mlp for layer in model.layers] == ["none", "dense", "none", "none", "moe"]
    assert model.recurrent_layers == (0, 2)
    assert model.ssm_dtype == "float32"
    listed = {**hf, "layers_block_type": ["mamba", "mlp", "mamba", "attention", "moe"]}
    del listed["hybrid_override_pattern"]
    assert model_info(listed, "nemotron").layers == model.layers
    assert model_info({**hf, "mamba_ssm_cache_dtype": "bfloat16"}, "nemotron").ssm_dtype == "bfloat16"
    with pytest.raises(ConfigError, match=r"holds \['X'\]"):
        model_info({**hf, "hybrid_override_pattern": "MX*"}, "nemotron")
    with pytest.raises(ConfigError, match="4 letters for num_hidden_layers=7"):
        model_info({**hf, "hybrid_override_pattern": "MM*-", "num_hidden_layers": 7}, "nemotron")


def test_falcon_keeps_both_caches_in_every_layer():
    hf = {
        "model_type": "falcon_h1",
        "num_hidden_layers": 3,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "mamba_d_ssm": 96,
        "mamba_n_heads": 6,
        "mamba_d_head": 16,
        "mamba_d_state": 16,
        "vocab_size": 512,
    }
    model = model_info(hf, "falcon")
    assert model.attention_layers == model.recurrent_layers == (0, 1, 2)
    assert (model.num_kv_heads, model.head_dim) == (2, 16)
    assert model.recurrent_kind == "mamba2"


def test_a_pure_recurrent_model_has_no_heads():
    model = example_model("mamba")
    assert model.attention_layers == ()
    assert not model.is_hybrid
    assert (model.num_attention_heads, model.num_kv_heads, model.head_dim) == (0, 0, 0)


def test_parameters_are_counted_from_the_shapes():
    """A Llama of 4 layers, width 64, MLP 128, 8 heads of 8, 512 tokens, untied; norms are not counted."""
    layer = 4 * 64 * 64 + 3 * 64 * 128
    assert example_model("llama").parameters == 2 * 512 * 64 + 4 * layer
    tied = model_info({**MODELS["llama"], "tie_word_embeddings": True}, "tied")
    assert tied.parameters == 512 * 64 + 4 * layer
    assert example_model("jamba").expert_parameters == 2 * 4 * 3 * 64 * 128


@pytest.mark.engine
@pytest.mark.slow  # transformers takes seconds to import
@pytest.mark.parametrize("name", ["llama", "jamba", "mamba", "bamba", "qwen3-next"])
def test_parameter_counts_agree_with_transformers(name):
    """Built on the meta device by transformers; norms and biases are small, so within 3 %."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    hf = {key: value for key, value in MODELS[name].items() if key not in {"architectures", "model_type"}}
    config = AutoConfig.for_model(MODELS[name]["model_type"], **hf)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    theirs = sum(tensor.numel() for tensor in dict(model.named_parameters()).values())
    info = example_model(name)
    tied = config.get_text_config().tie_word_embeddings
    ours = model_info({**MODELS[name], "tie_word_embeddings": tied}, name)
    assert ours.parameters + ours.expert_parameters == pytest.approx(theirs, rel=0.03)
    if info.recurrent_layers:
        theirs_recurrent = tuple(i for i, kind in enumerate(config.layer_types) if "linear" in kind)
        assert info.recurrent_layers == theirs_recurrent


def test_every_model_type_is_read_by_one_family():
    assert len(BY_MODEL_TYPE) == sum(len(family.model_types) for family in FAMILIES)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_crosses_process_borders(name):
    model = example_model(name)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    if model.state_shapes is not None:
        assert again.state_shapes(2, 1) == model.state_shapes(2, 1)


def faults(hf):
    with pytest.raises(ConfigError) as caught:
        model_info(hf, "broken")
    return {fault.field: fault.message for fault in caught.value.faults}


def test_every_fault_is_told_at_once():
    broken = {**MODELS["jamba"], "hidden_size": "64", "num_experts": -1, "mamba_d_state": 0, "attn_layer_offset": 9}
    del broken["vocab_size"]
    told = faults(broken)
    assert set(told) == {"hidden_size", "num_experts", "mamba_d_state", "attn_layer_offset", "vocab_size"}
    assert told["hidden_size"] == "config.json: hidden_size='64' must be an integer of at least 1"


def test_an_unknown_family_names_the_nearest():
    assert "did you mean 'jamba'?" in faults({"model_type": "jambo"})["model_type"]
    assert "no model_type" in faults({})["model_type"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"torch_dtype": "float8"}, "torch_dtype"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"max_position_embeddings": 2.5}, "max_position_embeddings"),
    ],
)
def test_odd_values_are_refused(change, field):
    assert field in faults({**MODELS["llama"], **change})


def test_mamba2_sizes_must_fit_each_other():
    assert "mamba_n_heads" in faults({**MODELS["bamba"], "mamba_d_head": 17})
    assert "mamba_n_groups" in faults({**MODELS["bamba"], "mamba_n_groups": 5})
    assert "attn_layer_indices" in faults({**MODELS["bamba"], "attn_layer_indices": [4]})


def test_delta_net_sizes_must_fit_each_other():
    assert "linear_num_value_heads" in faults({**MODELS["qwen3-next"], "linear_num_value_heads": 6})
    assert "layer_types" in faults({**MODELS["qwen3-next"], "layer_types": ["full_attention"]})
    assert "layer_types" in faults({**MODELS["qwen3-next"], "layer_types": ["moving_average"] * 4})


def test_sliding_windows_are_not_read_as_full_attention():
    assert "use_sliding_window" in faults({**MODELS["llama"], "model_type": "qwen3", "use_sliding_window": True})
    mixed = ["full_attention", "sliding_attention"] * 2
    assert (
        "sliding_attention" in faults({**MODELS["llama"], "model_type": "qwen3", "layer_types": mixed})["layer_types"]
    )
    assert model_info({**MODELS["llama"], "layer_types": ["full_attention"] * 4}, "full").layers


@pytest.mark.parametrize(
    ("name", "model_type", "architecture"),
    [
        ("jamba", "jamba", "JambaForCausalLM"),
        ("llama", "qwen3", "Qwen3ForCausalLM"),
        ("mamba", "falcon_mamba", "FalconMambaForCausalLM"),
        ("qwen3-next", "qwen3_5_text", "Qwen3_5ForConditionalGeneration"),
        ("qwen3-next", "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration"),
    ],
)
def test_the_architecture_is_known_without_being_declared(name, model_type, architecture):
    hf = {key: value for key, value in MODELS[name].items() if key != "architectures"}
    assert model_info({**hf, "model_type": model_type}, "undeclared").architecture == architecture


def test_nested_faults_say_where():
    outer = {"model_type": "qwen3_5", "text_config": {**MODELS["qwen3-next"], "hidden_size": None}}
    assert "text_config.hidden_size" in faults(outer)


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats()
    | st.text(max_size=4)
    | st.lists(st.integers(-1, 9), max_size=3)
    | st.dictionaries(st.text(max_size=1), st.none(), max_size=1)
)
OTHER_KEYS = {"head_dim", "layer_types", "mamba_d_head", "attn_layer_indices", "mamba_dt_rank", "mamba_ssm_dtype"}


@given(name=st.sampled_from(sorted(MODELS)), data=st.data())
def test_a_mangled_config_is_read_or_refused_but_never_crashes(name, data):
    keys = data.draw(st.sets(st.sampled_from(sorted({*MODELS[name], *OTHER_KEYS})), max_size=4))
    mangled = {**MODELS[name], **{key: data.draw(ANYTHING, label=key) for key in sorted(keys)}}
    try:
        model = model_info(mangled, "mangled")
    except ConfigError:
        return
    resolution = resolve({}, model)
    assert resolution.accepted or resolution.violations
