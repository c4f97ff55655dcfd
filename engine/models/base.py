"""What every model family is: the tensors it expects, and a stack of pre-norm decoder layers."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch.nn.functional import pad

from staticfire.engine.config.model import ModelInfo
from staticfire.engine.errors import EngineError
from staticfire.engine.layers.attention import Attention
from staticfire.engine.layers.batch import ForwardBatch
from staticfire.engine.layers.linear import Linear
from staticfire.engine.layers.mamba1 import Mamba1Mixer
from staticfire.engine.layers.vocabulary import Embedding, SplitEmbedding, SplitHead
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.loader.weights import Weights
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.split import Part, VocabularyPart, vocabulary_part
from staticfire.engine.quantization.base import QuantizationMethod
from staticfire.kernels.rms_norm import fused_add_rms_norm, rms_norm

Mixer = Attention | Mamba1Mixer
FeedForward = Callable[[torch.Tensor, ForwardBatch], torch.Tensor]


class DecoderLayer(NamedTuple):
    """x + mixer(norm x), then x + feed_forward(norm x)."""

    input_norm: torch.Tensor
    mixer: Mixer
    post_norm: torch.Tensor
    feed_forward: FeedForward


class Decoder:
    """A language model of pre-norm layers over a residual stream."""

    def __init__(
        self,
        embed: Embedding,
        layers: Sequence[DecoderLayer],
        final_norm: torch.Tensor,
        lm_head: Linear | SplitHead,
        eps: float,
    ) -> None:
        """Hold the weights.

        Args:
            embed: Tokens to vectors.
            layers: In order.
            final_norm: [hidden].
            lm_head: Vectors to logits.
            eps: Of every norm over the residual stream.
        """
        self.dtype = embed.weight.dtype
        self.embed = embed
        self.layers = tuple(layers)
        self.final_norm = final_norm
        self.lm_head = lm_head
        self.eps = eps

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """Hidden states [tokens, hidden] after the final norm; caches are read and written on the way."""
        residual = self.embed(batch.token_ids)
        eps, backend = self.eps, batch.backend
        update: torch.Tensor | None = None
        for input_norm, mixer, post_norm, feed_forward in self.layers:
            if update is None:
                x = rms_norm(residual, input_norm, eps, backend=backend)
            else:
                x, residual = fused_add_rms_norm(update, residual, input_norm, eps, backend=backend)
            x, residual = fused_add_rms_norm(mixer(x, batch), residual, post_norm, eps, backend=backend)
            update = feed_forward(x, batch)
        if update is None:
            return rms_norm(residual, self.final_norm, eps, backend=backend)
        return fused_add_rms_norm(update, residual, self.final_norm, eps, backend=backend)[0]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[n, hidden] -> [n, vocabulary]."""
        return self.lm_head(hidden)


class Family(Protocol):
    """A module of `models/`: two functions, named in the registry."""

    def tensor_specs(self, info: ModelInfo) -> list[TensorSpec]:
        """Every tensor of the saved layout of this model.

        Raises:
            EngineError: `config.json` asks for something the engine does not compute.
        """

    def build(
        self, info: ModelInfo, weights: Weights, quantization: QuantizationMethod, max_len: int, group: Group
    ) -> Decoder:
        """Make this rank's part of the model from its tensors; positions stay below `max_len`."""


def eps_of(info: ModelInfo) -> float:
    """Epsilon of the RMS norms, as `config.json` or its Hugging Face default has it.

    Raises:
        EngineError: It is no number of at least 0.
    """
    eps = info.hf.get("rms_norm_eps", 1e-6)
    if not isinstance(eps, int | float) or not 0 <= eps < math.inf:
        raise EngineError(f"config.json: rms_norm_eps={eps!r} must be a number of at least 0")
    return float(eps)


def tied(info: ModelInfo) -> bool:
    """Whether the output matrix is the embedding."""
    return bool(info.hf.get("tie_word_embeddings", False))


def head_specs(info: ModelInfo, final_norm: str) -> list[TensorSpec]:
    """Embedding, final norm and output matrix."""
    size = (info.vocab_size, info.hidden_size)
    embed = "model.embed_tokens.weight"
    return [
        TensorSpec(embed, size),
        TensorSpec(final_norm, (info.hidden_size,), init="ones"),
        TensorSpec("lm_head.weight", size, presence="tied", same_as=embed)
        if tied(info)
        else TensorSpec("lm_head.weight", size),
    ]


def make_decoder(
    info: ModelInfo, weights: Weights, final_norm: str, layers: Sequence[DecoderLayer], group: Group
) -> Decoder:
    """Take the tensors of `head_specs` and close the model."""
    mine = vocabulary_part(info.vocab_size, group)
    table = _take_vocabulary(weights, "model.embed_tokens.weight", mine, group)
    head = Linear.tied(table) if tied(info) else Linear(_take_vocabulary(weights, "lm_head.weight", mine, group))
    whole = group.size == 1
    return Decoder(
        Embedding(table) if whole else SplitEmbedding(table, mine, group),
        layers,
        weights.take(final_norm),
        head if whole else SplitHead(head, info.vocab_size, group),
        eps_of(info),
    )


def _take_vocabulary(weights: Weights, name: str, mine: VocabularyPart, group: Group) -> torch.Tensor:
    """This rank's rows of a tensor of [vocabulary, hidden], padded with zeros to as many as every rank has."""
    if group.size == 1:
        return weights.take(name)
    rows = weights.take(name, Part(0, ((mine.start, mine.stop),)))
    return pad(rows, (0, 0, 0, mine.rows - rows.shape[0]))
