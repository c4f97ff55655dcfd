"""One step's next tokens."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from staticfire.engine.errors import EngineError
from staticfire.engine.sampler.draw import draw
from staticfire.engine.scheduler.output import ScheduledChunk

Floats = npt.NDArray[np.floating[Any]]

WIDE = frozenset({torch.float32, torch.float64})
"""dtypes that NumPy has too."""


def best_tokens(logits: torch.Tensor, chunks: Sequence[ScheduledChunk]) -> list[int]:
    """The best token after each chunk, the first of equals.

    Args:
        logits: [chunks, vocabulary], after the last token of each.
        chunks: The chunks, in the same order.

    Raises:
        EngineError: A logit is not finite: the forward pass went wrong, and no token would mean anything.
    """
    return _best(_array(logits), chunks)


def next_tokens(logits: torch.Tensor, chunks: Sequence[ScheduledChunk]) -> list[int]:
    """Choose the token that follows each chunk: forced tokens before all, the best at temperature 0, else a draw.

    Args:
        logits: [chunks, vocabulary], after the last token of each.
        chunks: The chunks that sample, in the same order.

    Raises:
        EngineError: A logit is not finite.
    """
    array = _array(logits)
    tokens = _best(array, chunks)
    for row, chunk in enumerate(chunks):
        params = chunk.sampling_params
        position = chunk.start + len(chunk.token_ids)
        if params.forced_token_ids is not None:
            tokens[row] = params.forced_token_ids[position - chunk.num_prompt_tokens]
        elif params.temperature > 0:
            tokens[row] = draw(array[row].astype(np.float64), params, position)
    return tokens


def _array(logits: torch.Tensor) -> Floats:
    array: Floats = (logits if logits.dtype in WIDE else logits.float()).numpy()
    return array


def _best(array: Floats, chunks: Sequence[ScheduledChunk]) -> list[int]:
    # NumPy's argmax is three times as quick here; NaN counts as the largest, so it cannot hide.
    argmax = array.argmax(axis=1)
    best = array[np.arange(len(chunks)), argmax]
    if not np.isfinite(best).all():
        bad = [chunk.request_id for chunk, value in zip(chunks, best.tolist(), strict=True) if not math.isfinite(value)]
        raise EngineError(f"logits are not finite for request(s) {', '.join(bad)}")
    tokens: list[int] = argmax.tolist()
    return tokens
