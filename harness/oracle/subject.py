"""The engine under test: everything the oracles ever ask of it.

Routing is recorded where the engine is in this process. Elsewhere it is unknown: an empty array.
"""

from collections.abc import Mapping, Sequence
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
class _Run:
    tokens: Tokens
    logprobs: list[TokenLogprobs]
    routing: Array
    stats: RequestStats


class Subject:
    """An engine with one configuration, recording its routing.

    Args:
        checkpoint: Folder of the checkpoint.
        config: Engine keywords.
        recorder: A recorder of another kind, for fault injection; the engine must be in this process.

    Raises:
        EngineError: The engine refuses the configuration or the checkpoint.
    """

    def __init__(self, checkpoint: Path, config: Mapping[str, Any], recorder: RoutingRecorder | None = None) -> None:
        self._recorder = recorder or RoutingRecorder()
        watched = recorder is not None or in_one_process(config)
        self.llm = LLM(checkpoint, observer=self._recorder if watched else None, **config)

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
        free = self._generate(prompts, [_params(max_tokens, top)] * len(prompts))
        differing = [i for i, run in enumerate(free) if run.tokens != continuations[i]]
        again = self._generate(
            [prompts[i] for i in differing], [_params(max_tokens, top, continuations[i]) for i in differing]
        )
        values = dict(enumerate(free)) | dict(zip(differing, again, strict=True))
        return [Answer(_observed(run.tokens, values[i]), run.stats, i in differing) for i, run in enumerate(free)]

    def _generate(self, prompts: Sequence[Tokens], params: Sequence[SamplingParams]) -> list[_Run]:
        if not prompts:
            return []
        outputs = self.llm.generate([list(prompt) for prompt in prompts], params)
        fed = {output.request_id: _fed(output) for output in outputs}
        routing = self._recorder.collect(fed)
        return [
            _Run(
                tuple(output.outputs[0].token_ids),
                output.outputs[0].logprobs or [],
                routing[output.request_id],
                output.stats,
            )
            for output in outputs
        ]


def in_one_process(config: Mapping[str, Any]) -> bool:
    """Whether an engine with these keywords computes in the process that asks, where its steps can be watched."""
    sizes = (config.get("tensor_parallel_size"), config.get("data_parallel_size"))
    return not config.get("enable_multiprocessing") and all(size in (None, 1) for size in sizes)


def _params(max_tokens: int, top: int, forced: Tokens | None = None) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, ignore_eos=True, logprobs=top, forced_token_ids=forced)


def _fed(output: RequestOutput) -> Tokens:
    return (*output.prompt_token_ids, *output.outputs[0].token_ids[:-1])


def _observed(free: Tokens, values: _Run) -> Observed:
    """Arrange values in a table; ragged ones (the engine reports too few) become an empty one, which is `wrong`."""
    widths = {len(entry.top) for entry in values.logprobs}
    if len(widths) != 1:
        empty = np.zeros((0, 0))
        return Observed(free, empty.astype(np.int64), empty, np.zeros(0, np.int64), values.routing)
    ids = [[entry.token_id, *(token for token, _ in entry.top)] for entry in values.logprobs]
    logprobs = [[entry.logprob, *(logprob for _, logprob in entry.top)] for entry in values.logprobs]
    argmax = [entry.argmax for entry in values.logprobs]
    return Observed(
        free, np.array(ids, np.int64), np.array(logprobs, np.float64), np.array(argmax, np.int64), values.routing
    )
