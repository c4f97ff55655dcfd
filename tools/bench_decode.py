"""Measure a decode step of the engine, of transformers and of a plain PyTorch loop, at several batches and sizes.

`python tools/bench_decode.py` gives all three the same checkpoint, prompts and tokens on one thread and takes processor
time, so that other work on the machine costs it little. They run in turn, round after round; the table for
docs/benchmarks.md has medians and the medians of the rounds' ratios. A step is the time of N + 1 tokens less that of
one, by N. The loop is in tools/bare_loop.py, and its tokens are held to those of transformers. With --profile it prints
what a step of the engine consists of instead.
"""

import argparse
import cProfile
import pstats
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from bare_loop import BareJamba

from staticfire.engine.llm import LLM
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.models import catalog
from staticfire.harness.models.weights import build

MEDIUM: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 8,
    "num_experts": 8,
    "mamba_d_state": 16,
    "mamba_dt_rank": 32,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 4096,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "attn_layer_period": 8,
    "attn_layer_offset": 4,
}
"""What a medium Jamba has other than the tiny one: 72 million parameters, seven Mamba layers to one of attention."""

SIZES: dict[str, dict[str, Any]] = {"tiny": {}, "medium": MEDIUM}
BATCHES = (1, 16, 64)
PROMPT = 16
GOAL, GOAL_BARE = 1.5, 1.0
"""How many times as quick as transformers, and as the plain loop, a step has to be."""

Decode = Callable[[list[list[int]], int], list[list[int]]]
"""Prompts of equal lengths and a number of tokens -> the greedy tokens of each."""


def sides(folder: Path) -> dict[str, Decode]:
    """The engine, transformers and the plain loop, on one checkpoint."""
    llm = LLM(folder, dtype="float32", enable_prefix_caching=False, max_num_seqs=64, max_num_batched_tokens=8192)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = None, 0

    def engine(prompts: list[list[int]], number: int) -> list[list[int]]:
        params = SamplingParams(max_tokens=number, ignore_eos=True)
        return [output.outputs[0].token_ids for output in llm.generate(prompts, params)]

    @torch.inference_mode()
    def theirs(prompts: list[list[int]], number: int) -> list[list[int]]:
        tokens = torch.tensor(prompts)
        made = model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=number, do_sample=False
        )  # fmt: skip
        following: list[list[int]] = made[:, PROMPT:].tolist()
        return following

    @torch.inference_mode()
    def bare(prompts: list[list[int]], number: int) -> list[list[int]]:
        loop = BareJamba(model, len(prompts), PROMPT + number)
        *first, last = torch.tensor(prompts).t()
        for tokens in first:
            loop.step(tokens)
        made = [loop.step(last)]
        for _ in range(number - 1):
            made.append(loop.step(made[-1]))
        tokens_of: list[list[int]] = torch.stack(made, 1).tolist()
        return tokens_of

    return {"engine": engine, "transformers": theirs, "plain loop": bare}


def seconds(decode: Decode, prompts: list[list[int]], tokens: int) -> float:
    """Processor time of one decode step."""
    times = []
    for number in (1, tokens + 1):
        start = time.process_time()
        decode(prompts, number)
        times.append(time.process_time() - start)
    return (times[1] - times[0]) / tokens


def draw(batch: int, vocabulary: int) -> list[list[int]]:
    """Prompts."""
    generator = random.Random(batch)  # noqa: S311 - prompts, not secrets
    return [[generator.randrange(3, vocabulary) for _ in range(PROMPT)] for _ in range(batch)]


def check(made: dict[str, list[list[int]]]) -> None:
    """Refuse to time what computes something else.

    Raises:
        AssertionError: A side differs from transformers in more than one token of a hundred, which rounding may move.
    """
    wanted = [token for tokens in made["transformers"] for token in tokens[:4]]
    for name, tokens in made.items():
        found = [token for entry in tokens for token in entry[:4]]
        same = sum(a == b for a, b in zip(found, wanted, strict=True))
        assert same >= 0.99 * len(wanted), f"{name}: {same} of {len(wanted)} tokens are those of transformers"


def row(size: str, batch: int, samples: dict[str, list[float]]) -> tuple[str, float, float]:
    """A row of the table, and the ratios to transformers and to the loop."""
    ours, theirs, bare = samples["engine"], samples["transformers"], samples["plain loop"]
    to_theirs = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    to_bare = statistics.median(b / a for a, b in zip(ours, bare, strict=True))
    cells = " | ".join(f"{1e3 * statistics.median(times):.2f} ms" for times in (ours, theirs, bare))
    return f"| {size} | {batch} | {cells} | **{to_theirs:.2f}** | **{to_bare:.2f}** |", to_theirs, to_bare


def make(size: str, folder: Path) -> int:
    """Write the checkpoint; returns its vocabulary."""
    tiny = catalog.load("jamba-tiny")
    assert tiny.tiny is not None
    config = {**tiny.config, **SIZES[size]}
    build(config, tiny.tiny).save_pretrained(folder)
    return int(config["vocab_size"])


def profile(engine: Decode, prompts: list[list[int]]) -> None:
    """Print where the time of a decode goes."""
    with cProfile.Profile(time.process_time) as profiler:
        engine(prompts, 65)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=list(SIZES), help=f"of {', '.join(SIZES)} (default: all)")
    parser.add_argument("--batch", type=int, nargs="+", default=list(BATCHES), help="sequences (default: 1 16 64)")
    parser.add_argument("--tokens", type=int, default=24, help="decode steps of a sample (default 24)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds after the warm-up (default 5)")
    parser.add_argument("--threads", type=int, default=1, help="threads of all sides (default 1)")
    parser.add_argument("--profile", action="store_true", help="print a profile of the engine instead")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    missed = []
    if not options.profile:
        print("| Jamba | batch | engine | transformers | plain loop | to transformers | to the loop |")
        print("|---|--:|--:|--:|--:|--:|--:|")
    for size in options.sizes:
        with TemporaryDirectory() as folder:
            vocabulary = make(size, Path(folder))
            decoders = sides(Path(folder))
        for batch in options.batch:
            prompts = draw(batch, vocabulary)
            check({name: decode(prompts, 4) for name, decode in decoders.items()})
            if options.profile:
                profile(decoders["engine"], prompts)
                continue
            samples: dict[str, list[float]] = {name: [] for name in decoders}
            for _ in range(options.rounds):
                for name, decode in decoders.items():
                    samples[name].append(seconds(decode, prompts, options.tokens))
            line, to_theirs, to_bare = row(size, batch, samples)
            print(line, flush=True)
            if to_theirs < GOAL or to_bare < GOAL_BARE:
                missed.append(f"{size}, batch {batch}: {to_theirs:.2f} and {to_bare:.2f}; goals {GOAL}, {GOAL_BARE}")
    for line in missed:
        print(line, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
