"""An observer of the engine that remembers what was scheduled: who was computed when, and in whose blocks."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from staticfire.engine.cache.spec import NULL_BLOCK
from staticfire.engine.observer import Observer
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.worker.cache import CacheBuffers


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The tokens of one request in one step."""

    request_id: str
    start: int
    length: int


class Ledger(Observer):
    """Keeps every step's chunks.

    Attributes:
        steps: The chunks of each step since the last `clear`.
        reused_states: Requests since then that began, without a cached prefix, on states in blocks of earlier requests.
        after_step: Called with the number of each step once it is computed, while its outcome is still unknown to the
            scheduler; None calls nobody.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[Scheduled, ...]] = []
        self.reused_states: set[str] = set()
        self.after_step: Callable[[int], None] | None = None
        self._used: set[int] = set()  # blocks that any request ever held

    def clear(self) -> None:
        """Forget the steps, but not which blocks have been used."""
        self.steps.clear()
        self.reused_states.clear()

    def first_steps(self) -> dict[str, int]:
        """The step in which each request was computed first, in the order of their first chunks."""
        found: dict[str, int] = {}
        for number, chunks in enumerate(self.steps):
            for chunk in chunks:
                found.setdefault(chunk.request_id, number)
        return found

    def before_forward(self, output: SchedulerOutput, caches: CacheBuffers) -> None:  # noqa: ARG002 - the contract's
        """Note the chunks, and who begins in blocks that somebody had before."""
        for chunk in output.chunks:
            if chunk.start == 0 and chunk.state_blocks and self._used.issuperset(chunk.state_blocks):
                self.reused_states.add(chunk.request_id)
        for chunk in output.chunks:
            for table in chunk.block_ids:
                self._used.update(table)
        self._used.discard(NULL_BLOCK)
        self.steps.append(tuple(Scheduled(c.request_id, c.start, len(c.token_ids)) for c in output.chunks))

    def step(self, output: SchedulerOutput, step_output: StepOutput) -> None:  # noqa: ARG002 - the contract's
        """Let whoever waits for a step act."""
        if self.after_step is not None:
            self.after_step(len(self.steps) - 1)


class Several(Observer):
    """Tells several observers of everything, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def before_forward(self, output: SchedulerOutput, caches: CacheBuffers) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.before_forward(output, caches)

    def routing(
        self, layer: int, topk_ids: torch.Tensor, topk_weights: torch.Tensor, router_logits: torch.Tensor
    ) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.routing(layer, topk_ids, topk_weights, router_logits)

    def step(self, output: SchedulerOutput, step_output: StepOutput) -> None:
        """See `Observer`."""
        for observer in self._observers:
            observer.step(output, step_output)
