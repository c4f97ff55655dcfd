"""The facts in `matrices/models/` against page arithmetic worked out by hand.

Bytes of one token in one attention layer: 2 * KV heads * head width * 2 (bfloat16). State bytes: convolution and
recurrent part of one layer, in the dtype that the model declares for each. The block is the smallest multiple of 16
whose page holds the state.
"""

import pytest

from staticfire.engine.config import model_info, resolve
from staticfire.harness.models import catalog, devices

BY_HAND = {
    # name: (bytes a token, state bytes, block)
    "jamba-v0.1": (2 * 8 * 128 * 2, (8192 * 3 + 8192 * 16) * 2, 80),
    "jamba-1.5-mini": (4096, 311296, 80),
    "bamba-9b": (4096, ((8192 + 2 * 128) * 3 + 128 * 64 * 128) * 2, 528),
    "nemotron-h-8b": (4096, (8192 + 2 * 8 * 128) * 3 * 2 + 128 * 64 * 128 * 4, 1040),
    "granite-4.0-h-tiny": (2048, ((3072 + 2 * 128) * 3 + 48 * 64 * 128) * 2, 400),
    "falcon-h1-0.5b": (512, ((1536 + 2 * 128) * 3 + 24 * 64 * 128) * 2, 800),
    "qwen3-next-80b-a3b": (2048, ((2 * 16 * 128 + 32 * 128) * 3 + 32 * 128 * 128) * 2, 544),
    "qwen3.5-dense": (4096, (2 * 16 * 128 + 48 * 128) * 3 * 2 + 48 * 128 * 128 * 4, 784),
    "qwen3.6-35b-a3b": (2048, (2 * 16 * 128 + 32 * 128) * 3 * 2 + 32 * 128 * 128 * 4, 1056),
    "llama-3.1-8b": (4096, 0, 16),
    "jamba-tiny": (2 * 4 * 16 * 4, (128 * 3 + 128 * 8) * 4, 16),
    "jamba-tiny-grow": (2 * 2 * 8 * 4, (128 * 3 + 128 * 16) * 4, 80),
    "llama-tiny": (2 * 2 * 16 * 4, 0, 16),
}


def test_every_model_is_worked_out():
    assert set(BY_HAND) == set(catalog.names())


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_the_page_of_each_model(name):
    found = catalog.find(name)
    config = {"max_model_len": 512, "kv_cache_memory_bytes": 2**36, "dtype": "bfloat16"}
    if catalog.load(name).tiny:
        config["dtype"] = "float32"
    resolution = resolve(config, model_info(found.hf, name), devices.find("mi300x"))
    assert resolution.runtime is not None
    runtime = resolution.runtime
    assert (runtime.attention_bytes_per_token, runtime.state_bytes, runtime.block_size) == BY_HAND[name]


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_transformers_knows_every_field_that_sizes_depend_on(name):
    """The field names are those of the families' own configuration classes, not names that we made up."""
    from transformers import CONFIG_MAPPING

    outer = dict(catalog.load(name).config)
    config = dict(outer.get("text_config", outer))
    kept = CONFIG_MAPPING[config.pop("model_type")].from_dict(config).to_dict()
    renamed = {"torch_dtype", "rope_theta", "rope_scaling", "partial_rotary_factor"}  # moved by newer versions
    folded = {"full_attention_interval", "hybrid_override_pattern", "num_hidden_layers"}  # into the list of layers
    aliases = getattr(CONFIG_MAPPING[outer["model_type"]], "attribute_map", {})
    assert {key for key in config if key not in kept and key not in aliases} <= renamed | folded | {"mamba_ssm_dtype"}
    for key in ("num_key_value_heads", "hidden_size", "vocab_size", "max_position_embeddings"):
        assert kept[key] == config[key]
