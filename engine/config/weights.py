"""How many bytes the weights of one rank take: counted from the shapes, and bounded where a quantization is at work."""

from dataclasses import dataclass
from typing import Final

from staticfire.engine.config.alignment import DTYPE_BYTES
from staticfire.engine.config.draft import Draft

LEAST: Final = 0.5
"""Bytes of a weight in the narrowest format there is."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Bounds on the weights of one rank.

    Attributes:
        least: Bytes that they take at least.
        most: Bytes that they take at most.
        because: Why the two differ; empty where they do not.
    """

    least: int
    most: int
    because: str = ""

    @property
    def known(self) -> bool:
        """Whether the size is known."""
        return not self.because


def weights(draft: Draft) -> Weights:
    """Count the weights of one rank, spread evenly over the ranks.

    Routed experts are quantized by every method, unless the checkpoint spares them. Embeddings are not. Of the rest it
    depends on names which are, so their size is between that of the format and that of the dtype.
    """
    model, size = draft.model, DTYPE_BYTES[draft.dtype]
    spread = draft.world_size
    quantized = model.quantization
    if quantized is None:
        if draft.quantization in {None, "experts_int8"}:
            expert = 1 if draft.quantization == "experts_int8" else size
            whole = (model.parameters * size + model.expert_parameters * expert) // spread
            return Weights(whole, whole)
        because = f"how {draft.quantization} packs them when it loads is not counted here"
        everything = model.parameters + model.expert_parameters
        return Weights(int(everything * LEAST) // spread, everything * size // spread, because)
    packed = quantized.weight_bytes
    embedded = min(model.vocab_size * model.hidden_size, model.parameters)
    rest = model.parameters - embedded
    least = embedded * size + (rest + model.expert_parameters) * (LEAST if packed is None else packed)
    exact = packed is not None and not quantized.spares_experts
    most = (embedded + rest) * size + model.expert_parameters * (packed if exact and packed is not None else size)
    if packed is None:
        because = f"the format of {quantized.method} in this checkpoint is not read"
    elif quantized.spares_experts:
        because = "the checkpoint leaves layers unquantized by name, maybe experts among them"
    else:
        because = "which layers beside the routed experts are quantized goes by their names, and is not counted"
    return Weights(int(least) // spread, int(most) // spread, because)
