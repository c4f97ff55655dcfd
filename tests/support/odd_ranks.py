"""Ranks with a fault, as entries for `ProcessExecutor`. `ODD_RANK` says which rank has it, `ODD_STEP` in which step."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.errors import EngineError
from staticfire.engine.executor import rank as ranks
from staticfire.engine.executor.messages import Setup, decode
from staticfire.engine.process.frames import Channel
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.worker import worker as workers
from staticfire.engine.worker.runner import ModelRunner


def _is_odd(payload: bytes) -> bool:
    setup: Setup = decode(payload, Setup)
    return setup.rank == int(os.environ["ODD_RANK"])


def _in_step(payload: bytes, fault: Callable[[], None], *, odd: bool | None = None) -> None:
    """Run `fault` in the middle of a step: before the logits, after the layers and their sums."""
    if not (_is_odd(payload) if odd is None else odd):
        return
    step, execute = int(os.environ["ODD_STEP"]), ModelRunner.execute

    def faulty(self: ModelRunner, output: SchedulerOutput) -> StepOutput:
        if output.step == step:
            logits = self.model.logits

            def broken(hidden: torch.Tensor) -> torch.Tensor:
                self.model.logits = logits  # type: ignore[method-assign]
                fault()
                return logits(hidden)

            self.model.logits = broken  # type: ignore[method-assign]
        return execute(self, output)

    ModelRunner.execute = faulty  # type: ignore[method-assign]


def dies(payload: bytes, channel: Channel) -> int:
    """Kills itself in a step."""
    _in_step(payload, lambda: os.kill(os.getpid(), signal.SIGKILL))
    return ranks.main(payload, channel)


def hangs(payload: bytes, channel: Channel) -> int:
    """Stops in a step, as a process that swaps does."""
    _in_step(payload, lambda: os.kill(os.getpid(), signal.SIGSTOP))
    return ranks.main(payload, channel)


def dawdles(payload: bytes, channel: Channel) -> int:
    """Takes a second for a step."""
    _in_step(payload, lambda: time.sleep(1))
    return ranks.main(payload, channel)


def breaks(payload: bytes, channel: Channel) -> int:
    """Has a bug that shows in a step on this rank alone."""

    def fault() -> None:
        raise ValueError("a bug of this rank")

    _in_step(payload, fault)
    return ranks.main(payload, channel)


def fails_with_all(payload: bytes, channel: Channel) -> int:
    """Meets, as every rank does, an error of the step."""

    def fault() -> None:
        raise EngineError("logits are not finite for request(s) 0.0")

    _in_step(payload, fault, odd=True)
    return ranks.main(payload, channel)


def miscounts(payload: bytes, channel: Channel) -> int:
    """Believes in one block less."""
    if _is_odd(payload):
        settle = workers.settle_worker  # type: ignore[attr-defined]  # patched where it is used

        def fewer(resolved: ResolvedConfig) -> EngineConfig:
            config = settle(resolved)
            runtime = config.runtime
            return replace(config, runtime=replace(runtime, num_gpu_blocks=runtime.num_gpu_blocks - 1))

        workers.settle_worker = fewer  # type: ignore[attr-defined]
    return ranks.main(payload, channel)


def stays_away(payload: bytes, channel: Channel) -> int:
    """Never comes to meet the others."""
    if _is_odd(payload):
        channel.receive()
    return ranks.main(payload, channel)


def cannot_import(payload: bytes, channel: Channel) -> int:
    """Ends with a traceback before it has said a word."""
    if _is_odd(payload):
        raise ImportError("no module of that name")
    return ranks.main(payload, channel)
