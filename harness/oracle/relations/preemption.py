"""A request that lost its blocks and started over gives what it gives undisturbed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.config import accept
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.config.errors import ConfigError
from staticfire.engine.errors import RequestError
from staticfire.engine.request import Request
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import StepOutput
from staticfire.engine.scheduler.scheduler import Scheduler
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.oracle.base import Tokens
from staticfire.harness.oracle.relations.base import Outcome, Trial, decides_tokens, several_engines
from staticfire.harness.oracle.relations.prompt_logprobs import values_of_prompt
from staticfire.harness.oracle.subject import TOP, Subject

REQUESTS = 4
"""Requests that compete for the pool."""


class Preemption:
    """Run a few prompts in a pool so small that they cannot all grow.

    How small is found by playing the scheduler through without a model, from the smallest pool upwards: the first in
    which one is preempted in the middle of its prompt, else the first in which one is preempted at all. Where prompts
    are compared with transformers, the last request asks for its prompt's values too, gathered chunk by chunk.
    """

    name = "preemption"

    def applies(self, config: EngineConfig) -> bool:
        """Where two requests may run at once."""
        return config.scheduler.max_num_seqs > 1

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """In other processes: it takes a second engine, and starting those twice costs more than it shows."""
        parallel = config.parallel
        if parallel.enable_multiprocessing or parallel.tensor_parallel_size > 1:
            return several_engines(config) or "it starts a second engine, which is done in one process only"
        return None

    def check(self, trial: Trial) -> Outcome:
        """Find a pool that forces preemption, run in it, and count."""
        prompts = sorted(trial.family("block"), key=lambda prompt: -len(prompt.tokens))[:REQUESTS]
        asked = [trial.params() for _ in prompts]
        if decides_tokens(trial.config):
            asked[-1] = replace(asked[-1], prompt_logprobs=TOP)
        sequences = [
            Foretold(prompt.tokens, trial.continuations[prompt.tokens], params)
            for prompt, params in zip(prompts, asked, strict=True)
        ]
        typed = squeezed(trial.typed, trial.config, sequences)
        if typed is None:
            return Outcome((), "no pool size makes these prompts preempt each other", {"preemptions": 0})
        with Subject(trial.checkpoint, typed) as subject:
            runs = subject.run([prompt.tokens for prompt in prompts], asked)
            answered = trial.answered(self.name, subject, prompts, runs)
        count = sum(run.stats.num_preemptions for run in runs)
        inside = sum(cut_short(run.stats.chunks, len(prompt.tokens)) for prompt, run in zip(prompts, runs, strict=True))
        if asked[-1].prompt_logprobs is not None:
            answered.append(values_of_prompt(trial, f"{self.name}, prompt", prompts[-1], runs[-1]))
        reason = f"nothing was preempted with num_gpu_blocks_override={typed['num_gpu_blocks_override']}"
        figures = {"preemptions": count, "in_a_prompt": inside, "blocks": int(typed["num_gpu_blocks_override"])}
        return Outcome(answered, None if count else reason, figures)


class Foretold(NamedTuple):
    """A request whose tokens are known beforehand."""

    prompt: Tokens
    continuation: Tokens
    params: SamplingParams


def squeezed(typed: Mapping[str, Any], config: EngineConfig, sequences: Sequence[Foretold]) -> dict[str, Any] | None:
    """The configuration with the smallest pool in which every request finishes and one is preempted; None if none is.

    A pool in which a request that asks for its prompt's values is preempted inside its prompt is preferred.

    Args:
        typed: Engine keywords.
        config: What they resolve to.
        sequences: Prompts and their continuations.
    """
    lengths = [len(sequence.prompt) + len(sequence.continuation) for sequence in sequences]
    first: dict[str, Any] | None = None
    for blocks in range(2, ample(config, lengths)):
        smaller = {**typed, "num_gpu_blocks_override": blocks, "max_model_len": max(lengths)}
        try:
            played = rehearse(settle_worker(accept(smaller, config.model.info, config.device)), sequences)
        except (ConfigError, RequestError):
            continue  # too small for one request alone
        if any(
            cut_short(request.chunks, request.num_prompt_tokens)
            for request in played
            if request.sampling_params.prompt_logprobs is not None
        ):
            return smaller
        if any(request.num_preemptions for request in played):
            first = first or smaller
        elif first is not None:
            break  # no larger pool preempts more
    return first


def cut_short(chunks: Sequence[tuple[int, int]], prompt: int) -> bool:
    """Whether a request began anew before its prompt was computed to its end, but after a part of it was."""
    reached = 0
    for start, length in chunks:
        if start < reached < prompt:
            return True
        reached = start + length
    return False


def ample(config: EngineConfig, lengths: Sequence[int]) -> int:
    """A pool in which requests of these lengths never meet: all their blocks at once, and states to spare."""
    runtime = config.runtime
    return 2 + runtime.num_groups * sum(-(-length // runtime.block_size) + 3 for length in lengths)


def rehearse(config: EngineConfig, sequences: Sequence[Foretold]) -> list[Request]:
    """Play the scheduler through without a model; returns the requests as they ended.

    Raises:
        RequestError: A request would not fit the pool even alone.
    """
    scheduler = Scheduler(config, plan_cache(config))
    requests = [Request(str(i), list(sequence.prompt), sequence.params, i) for i, sequence in enumerate(sequences)]
    for request in requests:
        scheduler.add(request)
    while scheduler.has_unfinished():
        output = scheduler.schedule()
        sampling = [requests[int(chunk.request_id)] for chunk in output.chunks if chunk.samples]
        sampled = {
            request.request_id: sequences[int(request.request_id)].continuation[len(request.output_token_ids)]
            for request in sampling
        }
        scheduler.update(output, StepOutput(sampled, {}, {}))
    return requests
