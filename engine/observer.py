"""Watching the engine from outside: what a test asserts on, and what an oracle records."""

from typing import TYPE_CHECKING

from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput

if TYPE_CHECKING:  # a front end whose engine is in another process never needs torch
    import torch

    from staticfire.engine.worker.cache import CacheBuffers


class Observer:
    """Told of every step. Subclass it and override what matters; the rest does nothing."""

    def before_forward(self, output: SchedulerOutput, caches: "CacheBuffers") -> None:
        """Copies and zeroing are done, the forward pass is next; `caches` may be changed (fault injection)."""

    def routing(
        self, layer: int, topk_ids: "torch.Tensor", topk_weights: "torch.Tensor", router_logits: "torch.Tensor"
    ) -> None:
        """Experts of layer `layer`: ids [T, k], weights [T, k], logits [T, E]; rows as the tokens of the chunks."""

    def step(self, output: SchedulerOutput, step_output: StepOutput) -> None:
        """A step is done; the scheduler has not yet seen its outcome."""
