"""Rotary tables against transformers and against plain trigonometry."""

import math

import pytest
import torch

from staticfire.engine.errors import EngineError
from staticfire.engine.layers.linear import Linear
from staticfire.engine.layers.rotary import cos_sin_table, rope_theta

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bits_are_those_of_transformers(dtype: torch.dtype):
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = LlamaConfig(
        hidden_size=64, num_attention_heads=4, rope_parameters={"rope_type": "default", "rope_theta": 5e3}
    )
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1, dtype=dtype), torch.arange(300)[None])
    table = cos_sin_table(5e3, 16, 300, dtype)
    assert table.dtype is dtype
    assert torch.equal(table[:, :8], cos[0, :, :8])
    assert torch.equal(table[:, 8:], sin[0, :, :8])


def test_float64_has_no_float32_step():
    table = cos_sin_table(1e4, 8, 50, torch.float64)
    for position in (0, 1, 49):
        for index in range(4):
            angle = position * 1e4 ** (-2 * index / 8)
            assert table[position, index].item() == pytest.approx(math.cos(angle), abs=1e-14)
            assert table[position, 4 + index].item() == pytest.approx(math.sin(angle), abs=1e-14)


@pytest.mark.parametrize(
    ("hf", "theta"),
    [
        ({}, 10000.0),
        ({"rope_theta": 5.0}, 5.0),
        ({"rope_theta": 5.0, "rope_scaling": None}, 5.0),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}}, 7.0),
        ({"rope_parameters": {"rope_theta": 7.0}, "rope_theta": 5.0}, 7.0),
    ],
)
def test_the_base_in_its_old_and_new_place(hf: dict[str, object], theta: float):
    assert rope_theta(hf) == theta


@pytest.mark.parametrize("hf", [{"rope_scaling": {"type": "linear"}}, {"rope_parameters": {"rope_type": "yarn"}}])
def test_scaled_kinds_are_refused(hf: dict[str, object]):
    with pytest.raises(EngineError, match=r"rope_type='(linear|yarn)' is not supported"):
        rope_theta(hf)


def test_linear_is_linear():
    generator = torch.Generator().manual_seed(1)
    weight, bias, x = (
        torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((5, 3), (5,), (4, 3))
    )
    wanted = torch.einsum("ni,oi->no", x, weight)
    torch.testing.assert_close(Linear(weight)(x), wanted, rtol=0, atol=1e-14)
    torch.testing.assert_close(Linear(weight, bias)(x), wanted + bias, rtol=0, atol=1e-14)
    torch.testing.assert_close(Linear.tied(weight)(x), wanted, rtol=0, atol=1e-14)
    assert Linear.tied(weight).weight.data_ptr() == weight.data_ptr()
