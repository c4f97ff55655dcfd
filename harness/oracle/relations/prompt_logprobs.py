"""Log-probabilities of a prompt are transformers', whatever the cuts, and whatever of it is cached."""

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.oracle.compare import Expected
from staticfire.harness.oracle.plan import Planned, chunk_size
from staticfire.harness.oracle.relations.base import Answered, Outcome, Trial, decides_tokens
from staticfire.harness.oracle.subject import TOP, Answer, Run, observed_values

PROMPTS = 2


class PromptLogprobs:
    """Ask for the values of two prompts that the cold run has cached, one of them cut where prompts are."""

    name = "prompt-logprobs"

    def applies(self, config: EngineConfig) -> bool:
        """Where what is allowed is known for the positions of a prompt, too: noise is measured on answers alone."""
        return decides_tokens(config)

    def out_of_reach(self, config: EngineConfig) -> str | None:  # noqa: ARG002 - the contract's
        """Nowhere: the values are part of the output."""
        return None

    def check(self, trial: Trial) -> Outcome:
        """Run them, and compare every position with one pass of transformers."""
        prompts = _prompts(trial)
        asked = SamplingParams(max_tokens=2, ignore_eos=True, prompt_logprobs=TOP)
        runs = trial.subject.run([prompt.tokens for prompt in prompts], asked)
        answered = [values_of_prompt(trial, self.name, prompt, run) for prompt, run in zip(prompts, runs, strict=True)]
        cut = sum(len(run.stats.chunks) > 2 for run in runs)  # prompt, one decode
        vacuous = None
        if not any(len(prompt.tokens) > 2 for prompt in prompts):
            vacuous = "no prompt has more than two tokens"
        elif chunk_size(trial.config) is not None and not cut and _must_be_cut(trial):
            vacuous = "no prompt was cut"
        positions = sum(len(prompt.tokens) - 1 for prompt in prompts)
        return Outcome(answered, vacuous, {"positions": positions, "prompts_cut": cut})


def values_of_prompt(trial: Trial, label: str, prompt: Planned, run: Run) -> Answered:
    """The values of a prompt that was asked for them, beside one pass of transformers over it."""
    values = run.output.prompt_logprobs or []
    # The first entry has to be None, for nothing comes before the first token.
    found = [entry for entry in values[1:] if entry is not None] if values and values[0] is None else []
    fed, wanted = prompt.tokens[:-1], prompt.tokens[1:]
    rows = trial.scores.score(fed, len(fed), run.routing[:, : len(fed)])
    seen = observed_values(tuple(entry.token_id for entry in found), found, run.routing[:, :0])
    return Answered(label, prompt, Answer(seen, run.stats, forced_again=False), Expected(wanted, wanted, rows))


def _prompts(trial: Trial) -> list[Planned]:
    """The shortest that take more than a chunk, else more than a block."""
    limit = chunk_size(trial.config)
    planned = sorted(trial.family("text", "block", "chunk"), key=lambda prompt: len(prompt.tokens))
    size = limit if limit is not None and _must_be_cut(trial) else trial.config.runtime.block_size
    return [prompt for prompt in planned if len(prompt.tokens) > (size or 0)][:PROMPTS]


def _must_be_cut(trial: Trial) -> bool:
    limit = chunk_size(trial.config)
    return limit is not None and any(len(prompt.tokens) > limit for prompt in trial.family("text", "block", "chunk"))
