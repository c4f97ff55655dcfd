"""What a family file provides, and the reader that collects every fault of a `config.json`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from staticfire.engine.config.errors import Fault
from staticfire.engine.config.model import LayerInfo, StateShape

StateShapes = Callable[[int, int], tuple[StateShape, ...]]

MAX_LAYERS = 10_000
"""More layers than any model has: a larger number in a `config.json` is a typing error, not a model."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a family file makes of a `config.json`; the rest of `ModelInfo` is read alike for all.

    Attributes:
        layers: Every decoder layer in order.
        states: Shapes of one recurrent layer's state, None without recurrent layers.
        parameters: Weights outside the routed experts, counted from the shapes.
        expert_parameters: Weights of all routed experts.
        num_experts: Experts of one MoE layer, 0 without.
        num_experts_per_tok: Experts chosen per token, 0 without.
        head_dim: Elements of one attention head; 0 without attention.
        ssm_dtype: State dtype that the checkpoint or the family asks for.
        ssm_dtype_because: Who asks for it.
        chunk_size: Tokens of one chunk of the family's scan kernel; None without recurrent layers.
        mlp_widths: Inner widths of the MLPs outside the routed experts.
        expert_width: Inner width of a routed expert, 0 without.
    """

    layers: tuple[LayerInfo, ...]
    states: StateShapes | None
    parameters: int
    expert_parameters: int = 0
    num_experts: int = 0
    num_experts_per_tok: int = 0
    head_dim: int = 0
    ssm_dtype: str | None = None
    ssm_dtype_because: str | None = None
    chunk_size: int | None = None
    mlp_widths: tuple[int, ...] = ()
    expert_width: int = 0


class Reader:
    """Reads keys of a `config.json`, remembering every fault instead of stopping at the first.

    A faulty key reads as 1 (or the default), so that reading goes on; `faults` then refuses the whole.
    """

    def __init__(self, hf: Mapping[str, Any], prefix: str = "") -> None:
        self.hf = hf
        self.prefix = prefix
        self.faults: list[Fault] = []

    def fault(self, key: str, message: str, value: Any = None) -> None:
        """Remember what is wrong with `key`."""
        self.faults.append(Fault(type="model-config", field=f"{self.prefix}{key}", message=message, value=value))

    def size(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """An integer of at least `least`; `default` where the key is absent or null."""
        value = self.hf.get(key)
        if value is None:
            if default is None:
                self.fault(key, f"config.json has no {self.prefix}{key}; an integer of at least {least} is needed")
                return max(least, 1)
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fault(key, f"config.json: {self.prefix}{key}={value!r} must be an integer of at least {least}", value)
            return max(least, 1)
        return value

    def names(self, key: str) -> list[str] | None:
        """A list of strings; None where the key is absent or null."""
        value = self.hf.get(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            self.fault(key, f"config.json: {self.prefix}{key} must be a list of strings", value)
            return None
        return list(value)

    def num_layers(self) -> int:
        """`num_hidden_layers`, refused where it is absurd."""
        layers = self.size("num_hidden_layers")
        if layers > MAX_LAYERS:
            self.fault(
                "num_hidden_layers",
                f"config.json: {self.prefix}num_hidden_layers={layers} is more than {MAX_LAYERS}",
                layers,
            )
            return 1
        return layers

    def layer_types(self, expected: int, allowed: Collection[str]) -> list[str] | None:
        """`layer_types` (or `layers_block_type`), checked for length and names."""
        key = "layer_types" if self.hf.get("layer_types") is not None else "layers_block_type"
        kinds = self.names(key)
        if kinds is None:
            return None
        unknown = sorted(set(kinds) - set(allowed))
        if unknown:
            self.fault(
                key,
                f"config.json: {self.prefix}{key} holds unknown kinds {unknown}; known are {sorted(allowed)}",
                kinds,
            )
            return None
        if len(kinds) != expected:
            self.fault(
                key,
                f"config.json: {self.prefix}{key} has {len(kinds)} entries for num_hidden_layers={expected}",
                kinds,
            )
            return None
        return kinds

    def kv_heads(self) -> int:
        """`num_key_value_heads`, all query heads where absent."""
        return self.size("num_key_value_heads", self.size("num_attention_heads"))

    def head_dim(self) -> int:
        """`head_dim`, or the width divided by the heads where absent."""
        return self.size("head_dim", max(1, self.size("hidden_size") // self.size("num_attention_heads")))


@dataclass(frozen=True, slots=True)
class Family:
    """A model family: the `model_type` names it answers to, and how to read it."""

    model_types: tuple[str, ...]
    architectures: tuple[str, ...]
    read: Callable[[Reader], Parts]


def attention_parameters(reader: Reader, head_dim: int, *, gated: bool = False) -> int:
    """Weights of one attention layer: q (twice with an output gate), k, v and o projections."""
    hidden = reader.size("hidden_size")
    heads = reader.size("num_attention_heads")
    return hidden * head_dim * ((3 if gated else 2) * heads + 2 * reader.kv_heads())


def embedding_parameters(reader: Reader) -> int:
    """Weights of the embedding and, unless tied, of the output projection."""
    tied = bool(reader.hf.get("tie_word_embeddings", False))
    return reader.size("vocab_size") * reader.size("hidden_size") * (1 if tied else 2)
