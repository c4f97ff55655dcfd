"""What a quantized checkpoint changes: keys and values, and the bytes of its weights. Sizes worked out by hand."""

import json

import pytest

from staticfire.engine.config import model_info, resolve
from staticfire.engine.config.quantized import read_quantization, with_file_beside
from staticfire.engine.config.release import RELEASES
from staticfire.engine.loader.index import read_hf_config
from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog, devices

QWEN = dict(catalog.load("qwen3.6-35b-a3b").config)
SCHEME = {"num_bits": 8, "type": "float", "dynamic": False}
BESIDE = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}


def explained(config, device="h200-141gb", release="vllm==0.28.0", **typed):
    return resolve(typed, model_info(config, "m"), devices.find(device), RELEASES[release])


def quantized(**config):
    return read_quantization({"quantization_config": config}, {})


@pytest.mark.parametrize(
    ("config", "dtype", "block"),
    [
        # 1,024 B a token instead of 2,048: 2,146,304 / 1,024 = 2,096 tokens
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": SCHEME}, "fp8_e4m3", 2096),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}, "fp8_e4m3", 2096),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": SCHEME}, "fp8", 2096),
        (BESIDE, "fp8_e4m3", 2096),
        ({"quant_method": "modelopt", "kv_cache_scheme": {**SCHEME, "dynamic": True}}, "bfloat16", 1056),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "INT8"}, "bfloat16", 1056),
        ({"quant_method": "fp8", "kv_cache_quant_algo": "FP8"}, "bfloat16", 1056),  # no method that reads it
        ({"quantization": BESIDE["quantization"]}, "bfloat16", 1056),  # nobody is named who wrote it
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, "bfloat16", 1056),
    ],
)
def test_the_checkpoint_sets_the_dtype_of_keys_and_values(config, dtype, block):
    found = explained({**QWEN, "quantization_config": config})
    value = found.values["cache.cache_dtype"]
    assert (value.value, value.source, found.runtime.block_size) == (dtype, "derived", block)
    assert ("the checkpoint asks for it" in value.because) == (dtype != "bfloat16")


def test_a_typed_dtype_wins_over_the_checkpoints():
    config = {"quant_method": "modelopt", "kv_cache_scheme": SCHEME}
    found = explained({**QWEN, "quantization_config": config}, kv_cache_dtype="bfloat16")
    assert found.values["cache.cache_dtype"].source == "typed"
    assert found.runtime.block_size == 1056


def test_packed_keys_and_values_leave_the_pages_unknown():
    found = explained({**QWEN, "quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "NVFP4"}})
    assert found.values["cache.cache_dtype"].value == "nvfp4"
    assert found.runtime is None
    assert "nvfp4 packs" in found.unknown["block_size"]


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1),
        ({"quant_method": "modelopt_fp4"}, 0.5625),  # 4 bits, and a byte for 16 weights
        (BESIDE, 0.5625),
        ({"quant_method": "mxfp4"}, 0.53125),  # and a byte for 32
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 0.5 + 2.5 / 128),  # scale and zero point a group
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, 0.5 + 2.5 / 64),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 1),
        ({"quant_method": "awq"}, None),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            1,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
            },
            0.5625,
        ),
        (
            {
                "quant_method": "compressed_tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
            },
            0.5 + 2 / 32,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 8}}, "b": {"weights": {"num_bits": 4}}},
            },
            None,
        ),
        ({"quant_method": "modelopt_mixed"}, None),
        ({"quant_method": "quark"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_bytes_of_a_weight_with_its_scales(config, size):
    assert quantized(**config).weight_bytes == size


@pytest.mark.parametrize(
    ("names", "spared"),
    [
        (["lm_head", "model.layers.0.linear_attn.conv1d"], False),
        (["*.mlp.shared_expert.*"], False),
        (["mtp.layers.0.mlp.experts"], False),
        (["re:.*mlp.experts.*"], True),
        (["model.layers.3.mlp.experts.0.up_proj"], True),
        (["re:.*"], True),
    ],
)
@pytest.mark.parametrize("key", ["ignore", "exclude_modules", "modules_to_not_convert"])
def test_names_that_spare_experts(key, names, spared):
    assert quantized(quant_method="fp8", **{key: names}).spares_experts is spared


NEMOTRON = {
    **catalog.load("nemotron-h-8b").config,
    "hidden_size": 4096,
    "hybrid_override_pattern": "M*E" * 10,
    "num_hidden_layers": 30,
    "n_routed_experts": 512,
    "n_shared_experts": 1,
    "num_experts_per_tok": 22,
    "moe_intermediate_size": 2688,
    "moe_shared_expert_intermediate_size": 5376,
    "moe_latent_size": 1024,
}


def test_experts_in_a_narrow_space_are_counted_there():
    assert model_info(NEMOTRON, "m").expert_parameters == 10 * 512 * 2 * 1024 * 2688
    wide = {key: value for key, value in NEMOTRON.items() if key != "moe_latent_size"}
    assert model_info(wide, "m").expert_parameters == 4 * model_info(NEMOTRON, "m").expert_parameters


def test_a_capacity_that_is_not_known_refuses_nothing_and_is_not_told():
    found = explained({**NEMOTRON, "quantization_config": BESIDE}, "h100-80gb")
    assert found.verdict == "not known"
    assert [limit.code for limit in found.limits] == ["SF504"]
    experts = 10 * 512 * 2 * 1024 * 2688 * 0.5625
    assert f"{experts / 2**30:.0f}" == "15"  # GiB; 52 as they were counted before
    least, most = (
        found.unknown["num_gpu_blocks"].removeprefix("the weights of one rank take ").split(":")[0].split(" to ")
    )
    assert 15 < float(least.split()[0]) < float(most.split()[0]) < 40
    assert not any("pool" in line or "at once" in line for line in (*found.arithmetic, *found.notes))


def test_weights_that_fit_in_no_format_are_refused():
    found = explained({**NEMOTRON, "quantization_config": BESIDE}, "l4", release="reference")
    assert "SF106" in {
        violation.code
        for violation in explained(
            {**NEMOTRON, "n_routed_experts": 4096, "quantization_config": BESIDE}, "h100-80gb"
        ).violations
    }
    assert "SF504" in {violation.code for violation in found.violations}


def test_a_pool_that_is_typed_is_known_whatever_the_weights_take():
    found = explained({**QWEN, "quantization_config": {"quant_method": "quark"}}, num_gpu_blocks_override=1000)
    assert found.unknown == {}
    assert found.runtime.num_gpu_blocks == 1000


def test_the_file_beside_config_json_is_read_where_config_json_says_nothing(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(BESIDE))
    for hf in (catalog.find(str(tmp_path)).hf, catalog.find(tmp_path / "config.json").hf, read_hf_config(tmp_path)):
        info = model_info(hf, "m")
        assert info.quantization is not None
        assert (info.quant_method, info.quantization.said_by) == ("modelopt_fp4", "hf_quant_config.json")
    own = {**QWEN, "quantization_config": {"quant_method": "fp8"}}
    assert with_file_beside(own, tmp_path) is own


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_a_broken_file_beside_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    (tmp_path / "hf_quant_config.json").write_text(text)
    with pytest.raises(InputError, match=r"hf_quant_config\.json: "):
        catalog.find(str(tmp_path))
