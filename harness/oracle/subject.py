"""The engine under test: everything the oracles ever ask of it.

Routing is recorded where the engine is in this process. Elsewhere it is unknown: an empty array.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.llm import LLM
from staticfire.engine.outputs import RequestOutput, RequestStats
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import TokenLogprobs
from staticfire.harness.oracle.base import Array, Tokens
from staticfire.harness.oracle.compare import Observed
from staticfire.harness.oracle.ledger import Ledger, Several
from staticfire.harness.oracle.recorder import RoutingRecorder

TOP = 8
"""Best tokens whose log-probabilities are compared at every position, besides the forced one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One prompt, answered.

    Attributes:
        observed: What is compared.
        stats: What happened during the free run.
        forced_again: Whether a second, teacher-forced run gave the values.
    """

    observed: Observed
    stats: RequestStats
    forced_again: bool


@dataclass(frozen=True, slots=True)
class Run:
    """One request as the engine ended it.

    Attributes:
        output: What a user gets.
        routing: Experts [L, T, k] of all tokens fed for it.
    """

    output: RequestOutput
    routing: Array

    @property
    def tokens(self) -> Tokens:
        """What was generated."""
        return tuple(self.output.outputs[0].token_ids)

    @property
    def logprobs(self) -> list[TokenLogprobs]:
        """Values at the generated tokens; empty where none were asked for."""
        return self.output.outputs[0].logprobs or []

    @property
    def stats(self) -> RequestStats:
        """What happened on the way."""
        return self.output.stats

    @property
    def ended(self) -> str | None:
        """Why it ended."""
        return self.output.outputs[0].finish_reason


class Subject:
    """An engine with one configuration, recording its routing.

    Args:
        checkpoint: Folder of the checkpoint.
        config: Engine keywords.
        recorder: A recorder of another kind, for fault injection; the engine must be in this process.

    Raises:
        EngineError: The engine refuses the configuration or the checkpoint.

    Attributes:
        ledger: What was scheduled; None where the engine is in another process.
    """

    def __init__(self, checkpoint: Path, config: Mapping[str, Any], recorder: RoutingRecorder | None = None) -> None:
        self._recorder = recorder or RoutingRecorder()
        watched = recorder is not None or in_one_process(config)
        self.ledger = Ledger() if watched else None
        observer = None if self.ledger is None else Several(self._recorder, self.ledger)
        self.llm = LLM(checkpoint, observer=observer, **config)

    @property
    def config(self) -> EngineConfig:
        """The accepted configuration."""
        return self.llm.config

    def text(self, token: int) -> str:
        """The text of one token; its number where there is no tokenizer."""
        return self.llm.tokenizer.decode([token]) if self.llm.tokenizer is not None else str(token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.llm.close()

    def answers(
        self, prompts: Sequence[Tokens], continuations: Sequence[Tokens], max_tokens: int, top: int = TOP
    ) -> list[Answer]:
        """Let the engine run freely, then once more teacher-forced where it went another way.

        Args:
            prompts: The prompts.
            continuations: For each prompt the tokens its values are wanted for.
            max_tokens: Tokens to generate, as many as each continuation holds.
            top: Best tokens to report a position.
        """
        return self.completed(prompts, self.run(prompts, params(max_tokens, top)), continuations, max_tokens, top)

    def completed(
        self,
        prompts: Sequence[Tokens],
        free: Sequence[Run],
        continuations: Sequence[Tokens],
        max_tokens: int,
        top: int = TOP,
    ) -> list[Answer]:
        """Make answers of free runs, with a second, teacher-forced run of those that went another way."""
        differing = [i for i, run in enumerate(free) if run.tokens != continuations[i]]
        again = self.run(
            [prompts[i] for i in differing], [params(max_tokens, top, forced=continuations[i]) for i in differing]
        )
        values = dict(enumerate(free)) | dict(zip(differing, again, strict=True))
        return [Answer(observed(run.tokens, values[i]), run.stats, i in differing) for i, run in enumerate(free)]

    def run(
        self,
        prompts: Sequence[Tokens],
        sampling: SamplingParams | Sequence[SamplingParams],
        *,
        request_ids: Sequence[str] | None = None,
        after_step: Callable[[int], None] | None = None,
    ) -> list[Run]:
        """Let the engine generate once.

        Args:
            prompts: The prompts.
            sampling: For all, or one each.
            request_ids: One each; made up when left out.
            after_step: Called with the number of each step, 0 for the first, where the engine is in this process.
        """
        if not prompts:
            return []
        given = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else list(sampling)
        if self.ledger is not None:
            self.ledger.clear()
            self.ledger.after_step = after_step
        outputs = self.llm.generate([list(prompt) for prompt in prompts], given, request_ids=request_ids)
        if self.ledger is not None:
            self.ledger.after_step = None
        fed = {output.request_id: _fed(output) for output in outputs}
        routing = self._recorder.collect(fed)
        return [Run(output, routing[output.request_id]) for output in outputs]


def in_one_process(config: Mapping[str, Any]) -> bool:
    """Whether an engine with these keywords computes in the process that asks, where its steps can be watched."""
    sizes = (config.get("tensor_parallel_size"), config.get("data_parallel_size"))
    return not config.get("enable_multiprocessing") and all(size in (None, 1) for size in sizes)


def params(max_tokens: int, top: int = TOP, *, forced: Tokens | None = None, priority: int = 0) -> SamplingParams:
    """A greedy request that no end-of-sequence token ends, with log-probabilities."""
    return SamplingParams(
        max_tokens=max_tokens, ignore_eos=True, logprobs=top, forced_token_ids=forced, priority=priority
    )


def _fed(output: RequestOutput) -> Tokens:
    return (*output.prompt_token_ids, *output.outputs[0].token_ids[:-1])


def observed(free: Tokens, values: Run) -> Observed:
    """Arrange the values of a run in a table, beside the tokens of the free run."""
    return observed_values(free, values.logprobs, values.routing)


def observed_values(free: Tokens, values: Sequence[TokenLogprobs], routing: Array) -> Observed:
    """Arrange values in a table; ragged ones (the engine reports too few) become an empty one, which is `wrong`."""
    widths = {len(entry.top) for entry in values}
    if len(widths) != 1:
        empty = np.zeros((0, 0))
        return Observed(free, empty.astype(np.int64), empty, np.zeros(0, np.int64), routing)
    ids = [[entry.token_id, *(token for token, _ in entry.top)] for entry in values]
    logprobs = [[entry.logprob, *(logprob for _, logprob in entry.top)] for entry in values]
    argmax = [entry.argmax for entry in values]
    return Observed(free, np.array(ids, np.int64), np.array(logprobs, np.float64), np.array(argmax, np.int64), routing)
