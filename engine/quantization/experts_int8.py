"""experts_int8: expert weights as symmetric int8 with one scale per output channel, made at load.

For every expert and output row r, s_r = max_k |W[r, k]| / 127 and Q[r, k] = round(W[r, k] / s_r), half to even,
in [-127, 127]; a row of zeros has scale 1. Everything else of the model keeps its dtype. Activations are not
quantized: the kernel accumulates x Q^T and multiplies by s_r afterwards (vLLM `experts_int8`).
"""

import torch

from staticfire.engine.quantization.base import ExpertWeights
from staticfire.kernels.dispatch import Backend
from staticfire.kernels.int8_quant import quantize_per_channel


class ExpertsInt8:
    """Quantizes expert weights, and only those."""

    name = "experts_int8"

    # w2 is split over its rows' elements, and a row has one scale, from the largest of them. A rank that saw its part
    # alone would find another scale, and the model would be another one at every number of ranks.
    needs_whole_rows = True

    def __init__(self, backend: Backend = "torch") -> None:
        """Quantize with the ops of `backend`."""
        self._backend = backend

    def experts(self, w13: torch.Tensor, w2: torch.Tensor) -> ExpertWeights:
        """Quantize one layer's experts.

        The arithmetic is float32 whatever the compute dtype, so that a float64 engine holds the same int8 weights
        and scales as a float32 one.
        """
        w13_int8, w13_scale = quantize_per_channel(w13.float(), backend=self._backend)
        w2_int8, w2_scale = quantize_per_channel(w2.float(), backend=self._backend)
        return ExpertWeights(w13_int8, w2_int8, w13_scale, w2_scale)
