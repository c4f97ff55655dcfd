"""The sizes at which ops are timed."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Scale:
    """Shapes of one model and batch, and where its tensors are.

    Attributes:
        device: Of all tensors.
        dtype: Of activations and weights.
        name: Of the dtype, as costs name it.
        sequences: In a decode.
        hidden: Channels of the model.
        inner: Channels of a Mamba layer.
        states: Of a Mamba channel.
        width: Taps of the convolution.
        heads: Query heads.
        key_heads: Heads of the cache.
        head_size: Of both.
        block: Positions of a cache block.
        positions: Of each sequence in a decode.
        experts: Of a layer.
        top_k: Experts of a token.
        intermediate: Channels of an expert.
        prompts: Lengths of the sequences of a prefill.
    """

    device: torch.device
    dtype: torch.dtype
    name: str
    sequences: int = 16
    hidden: int = 64
    inner: int = 128
    states: int = 8
    width: int = 4
    heads: int = 4
    key_heads: int = 4
    head_size: int = 16
    block: int = 16
    positions: int = 150
    experts: int = 4
    top_k: int = 2
    intermediate: int = 128
    prompts: tuple[int, ...] = (20, 50, 80, 100)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of a prefill."""
        return sum(self.prompts)


def tiny() -> Scale:
    """A four-layer tiny hybrid on the CPU with 16 sequences, where the time of a call itself matters."""
    return Scale(torch.device("cpu"), torch.float32, "fp32")


def real(device: torch.device) -> Scale:
    """A layer of a hybrid of about 10 billion weights, 64 sequences of 4096 positions, in bfloat16."""
    return Scale(
        device,
        torch.bfloat16,
        "bf16",
        sequences=64,
        hidden=4096,
        inner=8192,
        states=16,
        heads=32,
        key_heads=8,
        head_size=128,
        positions=4096,
        experts=16,
        intermediate=4096,
        prompts=(512, 1024, 1536, 1024),
    )
