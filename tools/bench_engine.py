"""Measure the engine against transformers' own `generate`: same checkpoint, prompts, batch, tokens and threads.

`python tools/bench_engine.py` runs both in turn, round after round, so that a slow moment of the machine falls on both
alike, and prints medians and the median of the rounds' ratios as a table for docs/benchmarks.md. Prefill is the time
to one token each, decode the rest. With mixed output lengths transformers runs its batch until the longest is done,
while the engine's batch shrinks; only the tokens asked for count. It refuses a busy machine unless --force is given.

Fairness: transformers gets its default attention and cache, one left-padded batch, no end-of-sequence token; the
engine gets no prefix cache, for the prompts of every round are the same.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from bench_common import refuses

from staticfire.engine.llm import LLM
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.models.make import ensure

HERE = Path(__file__).resolve().parent
GOALS = {"jamba-tiny": 2.0, "llama-tiny": 1.0}
"""Models, and by how much the engine must be quicker in tokens a second."""


@dataclass(frozen=True, slots=True)
class Work:
    """What both sides compute: prompts as token ids, and how many tokens follow each."""

    prompts: list[list[int]]
    outputs: list[int]

    @property
    def tokens(self) -> int:
        """Tokens asked for."""
        return sum(self.outputs)


Side = Callable[[Work], float]
"""Computes the work, returns the seconds it took."""


def scenarios(vocabulary: int) -> dict[str, Work]:
    """The work of each row of the table, from the committed lengths."""
    spec: Mapping[str, Any] = json.loads((HERE / "bench_prompts.json").read_text(encoding="utf-8"))
    generator = random.Random(spec["seed"])  # noqa: S311 - prompts, not secrets
    prompts = [[generator.randrange(3, vocabulary) for _ in range(n)] for n in spec["prompt_lengths"]]
    count = len(prompts)
    return {
        "prefill": Work(prompts, [1] * count),
        "equal lengths": Work(prompts, [spec["output_tokens"]] * count),
        "mixed lengths": Work(prompts, list(spec["mixed_output_tokens"])),
    }


def open_engine(folder: Path, **config: Any) -> LLM:
    """The engine with everything at its default but the prefix cache, and what `config` says."""
    return LLM(folder, dtype="float32", enable_prefix_caching=False, **config)


def engine_side(llm: LLM) -> Side:
    """An engine that is given the work."""

    def run(work: Work) -> float:
        params = [SamplingParams(max_tokens=tokens, ignore_eos=True) for tokens in work.outputs]
        start = time.perf_counter()
        outputs = llm.generate(work.prompts, params)
        seconds = time.perf_counter() - start
        assert [len(output.outputs[0].token_ids) for output in outputs] == work.outputs
        return seconds

    return run


def transformers_side(folder: Path) -> Side:
    """`generate` of transformers on one left-padded batch, as long as the longest output."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0

    def run(work: Work) -> float:
        longest = max(map(len, work.prompts))
        tokens = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in work.prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in work.prompts])
        most = max(work.outputs)
        start = time.perf_counter()
        with torch.inference_mode():
            made = model.generate(tokens, attention_mask=mask, max_new_tokens=most, do_sample=False)
        seconds = time.perf_counter() - start
        assert made.shape[1] == longest + most
        return seconds

    return run


def measure(ours: Side, theirs: Side, work: Mapping[str, Work], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """(engine, transformers) seconds of every scenario, round by round, after a round that is thrown away."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for number in range(rounds + 1):
        for name, task in work.items():
            pair = ours(task), theirs(task)
            if number:
                samples[name].append(pair)
    return samples


def with_decode(samples: dict[str, list[tuple[float, float]]]) -> dict[str, list[tuple[float, float]]]:
    """Add the scenario `decode`: equal lengths less prefill, round by round."""
    rounds = zip(samples["equal lengths"], samples["prefill"], strict=True)
    decode = [(ours - first, theirs - their_first) for (ours, theirs), (first, their_first) in rounds]
    return {**samples, "decode": decode}


def rows(model: str, samples: Mapping[str, Sequence[tuple[float, float]]], work: Mapping[str, Work]) -> list[str]:
    """One Markdown row per scenario: medians, tokens a second, and the median of the rounds' ratios."""
    made = []
    for name in ("equal lengths", "prefill", "decode", "mixed lengths"):
        pairs = samples[name]
        ours, theirs = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        tokens = work[name].tokens if name in work else work["equal lengths"].tokens - work["prefill"].tokens
        counted = sum(map(len, work["prefill"].prompts)) if name == "prefill" else tokens
        made.append(
            f"| {model} | {name} | {1e3 * ours:.0f} ms | {1e3 * theirs:.0f} ms | {counted / ours:,.0f} | "
            f"{counted / theirs:,.0f} | **{ratio(pairs):.2f}** |"
        )
    return made


def ratio(pairs: Sequence[tuple[float, float]]) -> float:
    """How many times as quick the engine is: the median over the rounds."""
    return statistics.median(theirs / ours for ours, theirs in pairs)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a goal was missed, 2 if the machine is busy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(GOALS), help="tiny models (default: all that have a goal)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds after the warm-up (default 5)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of both sides (default: cores)")
    parser.add_argument("--force", "--busy", action="store_true", help="measure even on a busy machine")
    options = parser.parse_args(argv)
    if refuses(force=options.force):
        return 2
    torch.set_num_threads(options.threads)
    print("| model | work | engine | transformers | tokens/s | tokens/s | ratio |")
    print("|---|---|--:|--:|--:|--:|--:|")
    missed = []
    for model in options.models:
        folder = ensure(model)
        work = scenarios(json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"])
        sides = engine_side(open_engine(folder)), transformers_side(folder)
        samples = with_decode(measure(*sides, work, options.rounds))
        print("\n".join(rows(model, samples, work)), flush=True)
        goal = GOALS.get(model, 0.0)
        if ratio(samples["equal lengths"]) < goal:
            missed.append(f"{model}: {ratio(samples['equal lengths']):.2f} times, the goal is {goal}")
    for line in missed:
        print(line, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
