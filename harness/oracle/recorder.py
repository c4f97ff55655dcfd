"""An observer of the engine that remembers which experts every token of every request went through."""

from collections.abc import Sequence

import numpy as np
import torch

from staticfire.engine.observer import Observer
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.worker.cache import CacheBuffers
from staticfire.harness.oracle.base import Array, Tokens

UNKNOWN = -1


class RoutingRecorder(Observer):
    """Records the experts chosen, by request and position.

    A position that a prefix hit spared was computed by an earlier request with the same tokens up to there; its
    experts are found again by those tokens. A recomputed position (after a preemption) keeps its latest experts.
    """

    def __init__(self) -> None:
        self._layers: dict[int, Array] = {}
        self._chunks: list[tuple[str, int, int]] = []
        self._computed: list[tuple[str, int, Array]] = []
        self._by_prefix: dict[int, Array] = {}

    def before_forward(self, output: SchedulerOutput, caches: CacheBuffers) -> None:  # noqa: ARG002 - the protocol's
        """Note whose rows come next."""
        self._chunks = [(chunk.request_id, chunk.start, len(chunk.token_ids)) for chunk in output.chunks]
        self._layers = {}

    def routing(
        self,
        layer: int,
        topk_ids: torch.Tensor,
        topk_weights: torch.Tensor,  # noqa: ARG002 - the protocol's
        router_logits: torch.Tensor,  # noqa: ARG002 - the protocol's
    ) -> None:
        """Note one layer's choices."""
        self._layers[layer] = topk_ids.to(torch.int16).numpy()

    def step(self, output: SchedulerOutput, step_output: StepOutput) -> None:  # noqa: ARG002 - the protocol's
        """Hand the rows out to their requests."""
        if not self._layers:
            return
        rows = np.stack([self._layers[layer] for layer in sorted(self._layers)])
        begin = 0
        for request_id, start, length in self._chunks:
            self._computed.append((request_id, start, rows[:, begin : begin + length]))
            begin += length

    def collect(self, sequences: dict[str, Tokens]) -> dict[str, Array]:
        """The routing of finished requests; what was recorded for them is then forgotten, but for prefixes.

        Args:
            sequences: Request id -> all tokens fed for it (prompt, and output without the last token).

        Returns:
            Request id -> experts [L, T, k]; `UNKNOWN` where nobody computed the position.
        """
        if not self._computed:
            return {request_id: np.zeros((0, len(tokens), 0), np.int16) for request_id, tokens in sequences.items()}
        layers, _, k = self._computed[0][2].shape
        found = {
            request_id: np.full((layers, len(tokens), k), UNKNOWN, np.int16) for request_id, tokens in sequences.items()
        }
        keys = {request_id: prefix_keys(tokens) for request_id, tokens in sequences.items()}
        for request_id, start, rows in self._computed:
            target = found.get(request_id)
            if target is None:
                continue
            target[:, start : start + rows.shape[1]] = rows[:, : target.shape[1] - start]
            for offset, key in enumerate(keys[request_id][start : start + rows.shape[1]]):
                self._by_prefix.setdefault(key, rows[:, offset])
        for request_id, target in found.items():
            for position in np.flatnonzero((target < 0).any((0, 2))):
                known = self._by_prefix.get(keys[request_id][position])
                if known is not None:
                    target[:, position] = known
        self._computed.clear()
        return found


def prefix_keys(tokens: Sequence[int]) -> list[int]:
    """A key for every position: a hash of all tokens up to and including it."""
    keys, key = [], 0
    for token in tokens:
        key = hash((key, token))
        keys.append(key)
    return keys
