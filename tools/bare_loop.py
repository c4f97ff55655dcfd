"""Jamba's decode step as a plain PyTorch loop over its layers: what is left to gain by whoever schedules and batches.

No scheduler, no pages, no sampling but the best token: tensors of a fixed batch, one `linear` after the other. It is no
part of the engine and shares no code with it.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu, softplus


class BareJamba:
    """Decodes prompts of equal lengths.

    Args:
        model: `JambaForCausalLM` of transformers; its weights are used as they lie.
        batch: Sequences.
        room: Tokens that each may have.
    """

    def __init__(self, model: Any, batch: int, room: int) -> None:
        self._model, self._config = model, model.config
        config, self._length = model.config, 0
        inner = config.mamba_expand * config.hidden_size
        head = config.hidden_size // config.num_attention_heads
        self._state: list[tuple[Tensor, Tensor]] = []
        for layer in model.model.layers:
            shapes: tuple[tuple[int, ...], ...]
            if hasattr(layer, "mamba"):
                shapes = (batch, inner, config.mamba_d_conv), (batch, inner, config.mamba_d_state)
            else:
                shapes = ((batch, config.num_key_value_heads, room, head),) * 2
            self._state.append((torch.zeros(shapes[0]), torch.zeros(shapes[1])))
        mixers = enumerate(layer.mamba if hasattr(layer, "mamba") else None for layer in model.model.layers)
        self._decays = {number: -torch.exp(mixer.A_log.float()) for number, mixer in mixers if mixer is not None}

    def step(self, tokens: Tensor) -> Tensor:
        """[batch] -> the next token of each."""
        model, eps = self._model.model, self._config.rms_norm_eps
        x = model.embed_tokens.weight[tokens]
        for number, layer in enumerate(model.layers):
            normed = rms_norm(x, x.shape[-1:], layer.input_layernorm.weight, eps)
            x = x + (self._mamba if hasattr(layer, "mamba") else self._attend)(number, layer, normed)
            normed = rms_norm(x, x.shape[-1:], layer.pre_ff_layernorm.weight, eps)
            x = x + self._feed(layer.feed_forward, normed)
        self._length += 1
        x = rms_norm(x, x.shape[-1:], model.final_layernorm.weight, eps)
        return linear(x, self._model.lm_head.weight).argmax(-1)

    def _mamba(self, number: int, layer: Any, x: Tensor) -> Tensor:
        m, eps, (conv, ssm) = layer.mamba, self._config.rms_norm_eps, self._state[number]
        hidden, gate = linear(x, m.in_proj.weight, m.in_proj.bias).chunk(2, -1)
        conv.copy_(torch.cat((conv[:, :, 1:], hidden.unsqueeze(-1)), -1))
        hidden = (conv * m.conv1d.weight[:, 0]).sum(-1)
        hidden = silu(hidden if m.conv1d.bias is None else hidden + m.conv1d.bias)
        sizes = [self._config.mamba_dt_rank, self._config.mamba_d_state, self._config.mamba_d_state]
        step, enter, leave = linear(hidden, m.x_proj.weight).split(sizes, -1)
        step = rms_norm(step, step.shape[-1:], m.dt_layernorm.weight, eps)
        enter = rms_norm(enter, enter.shape[-1:], m.b_layernorm.weight, eps)
        leave = rms_norm(leave, leave.shape[-1:], m.c_layernorm.weight, eps)
        step = softplus(linear(step, m.dt_proj.weight, m.dt_proj.bias))
        ssm.mul_(torch.exp(step.unsqueeze(-1) * self._decays[number]))
        ssm.add_((step * hidden).unsqueeze(-1) * enter.unsqueeze(1))
        out = torch.bmm(ssm, leave.unsqueeze(-1)).squeeze(-1) + hidden * m.D
        return linear(out * silu(gate), m.out_proj.weight, m.out_proj.bias)

    def _attend(self, number: int, layer: Any, x: Tensor) -> Tensor:
        attention, (keys, values), at = layer.self_attn, self._state[number], self._length
        size = keys.shape[-1]

        def heads(projection: Any) -> Tensor:
            return linear(x, projection.weight).view(x.shape[0], -1, 1, size)

        keys[:, :, at], values[:, :, at] = heads(attention.k_proj)[:, :, 0], heads(attention.v_proj)[:, :, 0]
        out = scaled_dot_product_attention(
            heads(attention.q_proj), keys[:, :, : at + 1], values[:, :, : at + 1], enable_gqa=True
        )
        return linear(out.reshape(x.shape[0], -1), attention.o_proj.weight)

    def _feed(self, feed: Any, x: Tensor) -> Tensor:
        if not hasattr(feed, "experts"):
            gate, value = linear(x, feed.gate_proj.weight), linear(x, feed.up_proj.weight)
            return linear(silu(gate) * value, feed.down_proj.weight)
        chances = linear(x, feed.router.weight).softmax(-1)
        weights, ids = chances.topk(self._config.num_experts_per_tok, -1)
        out = torch.zeros_like(x)
        for expert in ids.unique().tolist():
            row, column = (ids == expert).nonzero(as_tuple=True)
            gate, value = linear(x[row], feed.experts.gate_up_proj[expert]).chunk(2, -1)
            part = linear(silu(gate) * value, feed.experts.down_proj[expert])
            out.index_add_(0, row, part * weights[row, column].unsqueeze(-1))
        return out
