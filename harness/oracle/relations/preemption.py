"""A request that lost its blocks and started over gives what it gives undisturbed."""

from collections.abc import Mapping, Sequence
from typing import Any

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
from staticfire.harness.oracle.relations.base import Outcome, Trial, several_engines
from staticfire.harness.oracle.subject import Subject

REQUESTS = 4
"""Requests that compete for the pool."""


class Preemption:
    """Run a few prompts in a pool so small that they cannot all grow.

    How small is found by playing the scheduler through without a model, from the smallest pool upwards.
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
        longest_first = sorted(
            (answered.prompt for answered in trial.cold if answered.prompt.family == "block"),
            key=lambda prompt: -len(prompt.tokens),
        )
        prompts = longest_first[:REQUESTS]
        sequences = [(prompt.tokens, trial.continuations[prompt.tokens]) for prompt in prompts]
        typed = squeezed(trial.typed, trial.config, sequences)
        if typed is None:
            return Outcome((), "no pool size makes these prompts preempt each other", {"preemptions": 0})
        with Subject(trial.checkpoint, typed) as subject:
            answered = trial.answer(self.name, subject, prompts)
        count = sum(a.answer.stats.num_preemptions for a in answered)
        reason = f"nothing was preempted with num_gpu_blocks_override={typed['num_gpu_blocks_override']}"
        figures = {"preemptions": count, "blocks": int(typed["num_gpu_blocks_override"])}
        return Outcome(answered, None if count else reason, figures)


def squeezed(
    typed: Mapping[str, Any], config: EngineConfig, sequences: Sequence[tuple[Tokens, Tokens]]
) -> dict[str, Any] | None:
    """The configuration with the smallest pool in which every request finishes and one is preempted; None if none is.

    Args:
        typed: Engine keywords.
        config: What they resolve to.
        sequences: Prompts and their continuations.
    """
    lengths = [len(prompt) + len(tokens) for prompt, tokens in sequences]
    for blocks in range(2, _ample(config, lengths)):
        smaller = {**typed, "num_gpu_blocks_override": blocks, "max_model_len": max(lengths)}
        try:
            preemptions = rehearse(settle_worker(accept(smaller, config.model.info, config.device)), sequences)
        except (ConfigError, RequestError):
            continue  # too small for one request alone
        if preemptions:
            return smaller
    return None


def _ample(config: EngineConfig, lengths: Sequence[int]) -> int:
    """A pool in which requests of these lengths never meet: all their blocks at once, and states to spare."""
    runtime = config.runtime
    return 2 + runtime.num_groups * sum(-(-length // runtime.block_size) + 3 for length in lengths)


def rehearse(config: EngineConfig, sequences: Sequence[tuple[Tokens, Tokens]]) -> int:
    """Play the scheduler through without a model; returns the number of preemptions.

    Raises:
        RequestError: A request would not fit the pool even alone.
    """
    scheduler = Scheduler(config, plan_cache(config))
    requests = [
        Request(str(i), list(prompt), SamplingParams(max_tokens=len(tokens), ignore_eos=True), i)
        for i, (prompt, tokens) in enumerate(sequences)
    ]
    for request in requests:
        scheduler.add(request)
    while scheduler.has_unfinished():
        output = scheduler.schedule()
        sampling = [requests[int(chunk.request_id)] for chunk in output.chunks if chunk.samples]
        sampled = {
            request.request_id: sequences[int(request.request_id)][1][len(request.output_token_ids)]
            for request in sampling
        }
        scheduler.update(output, StepOutput(sampled, {}, {}))
    return sum(request.num_preemptions for request in requests)
