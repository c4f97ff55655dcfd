"""Blocks and pages that are foreseen are the ones that an installed engine settles, over drawn configurations."""

import random
import sys
from collections import Counter

import pytest

from staticfire.engine.config import ConfigError, model_info, resolve
from staticfire.engine.config.release import RELEASES
from staticfire.harness.models import catalog, devices
from staticfire.harness.probe.base import Accepted

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

GPUS = ("h100-80gb", "b200", "a100-80gb", "mi300x")
PAIRS = [(version, device) for version in ("0.28.0", "0.33.0") for device in GPUS]
NIGHTLY = [(version, device) for version in ("0.27.1", "0.28.0", "0.33.0") for device in (*GPUS, "h200-141gb", "l4")]
ABSENT = {"bamba-9b": "the releases know it no more, and run it by transformers' own model without recurrent layers"}
"""Model -> why the engine's answer is about something else."""

AXES = {
    "dtype": [None, None, None, "float16", "bfloat16", "float32"],
    "kv_cache_dtype": [None, None, None, "fp8", "fp8_e5m2", "fp8_e4m3", "bfloat16", "float16"],
    "mamba_cache_dtype": [None, None, None, "float32", "float16", "bfloat16"],
    "mamba_ssm_cache_dtype": [None, None, None, "float32", "float16", "bfloat16"],
    "tensor_parallel_size": [None, None, 2, 4, 8],
    "block_size": [None, None, None, 16, 32, 48, 64, 128, 256, 1024],
    "speculative_config": [None, None, None, 1, 2, 3, 5],
    "enable_prefix_caching": [None, None, None, False, True],
    "mamba_cache_mode": [None, None, None, "align", "none"],
}


def hybrids():
    """Names of our models with both kinds of layers, the ones that the releases know."""
    found = {name: model_info(catalog.load(name).config, name) for name in catalog.names()}
    return {name: info for name, info in found.items() if info.is_hybrid and name not in ABSENT}


def drawn(generator):
    typed = {name: generator.choice(values) for name, values in AXES.items()}
    if tokens := typed["speculative_config"]:
        typed["speculative_config"] = {
            "method": "ngram",
            "num_speculative_tokens": tokens,
            "prompt_lookup_max": 4,
            "prompt_lookup_min": 1,
        }
    return {name: value for name, value in typed.items() if value is not None}


def differences(probe, question, version, device, count):
    """Compare what is foreseen with what the engine settles.

    Returns:
        How many configurations came to which end, and those where the two differ.
    """
    generator = random.Random(f"{version} {device}")
    ends: Counter[str] = Counter()
    different = []
    for name, info in hybrids().items():
        for _ in range(count):
            typed = drawn(generator)
            outcome = probe.ask(question(name, **typed))
            if not isinstance(outcome, Accepted) or "cache.block_size" not in outcome.runtime:
                ends[f"engine: {type(outcome).__name__.lower()}"] += 1
                continue
            try:
                runtime = resolve(typed, info, devices.find(device), RELEASES[f"vllm=={version}"]).runtime
            except ConfigError:
                runtime = None
            if runtime is None:
                ends["foreseen: refused or not known"] += 1
                continue
            foreseen = (runtime.block_size, runtime.mamba_block_size, runtime.mamba_page_size_padded)
            names = ("cache.block_size", "cache.mamba_block_size", "cache.mamba_page_size_padded")
            settled = tuple(outcome.runtime[field] for field in names)
            ends["compared"] += 1
            if foreseen != settled:
                different.append((name, typed, foreseen, settled))
    return ends, different


def check(capsys, open_probe, question, version, device, count):
    ends, different = differences(open_probe(version, device), question, version, device, count)
    told = f"vllm=={version} on {device}: {len(different)} of {ends['compared']} differ; {dict(ends)}"
    with capsys.disabled():
        sys.stdout.write(f"\n{told}\n")
    assert ends["compared"] > count * len(hybrids()) / 3
    assert not different


@pytest.mark.parametrize(("version", "device"), PAIRS)
def test_a_sample_is_foreseen(capsys, open_probe, question, version, device):
    check(capsys, open_probe, question, version, device, 8)


@pytest.mark.nightly
@pytest.mark.parametrize(("version", "device"), NIGHTLY)
def test_a_large_sample_is_foreseen(capsys, open_probe, question, version, device):
    check(capsys, open_probe, question, version, device, 80)


@pytest.mark.parametrize(("version", "block"), [("0.28.0", 1152), ("0.33.0", 1152)])
def test_a_cpu_is_foreseen_where_the_states_dtype_does_not_depend_on_the_processor(
    open_probe, question, version, block
):
    outcome = open_probe(version, "cpu").ask(question("qwen3.6-35b-a3b", mamba_ssm_cache_dtype="float32"))
    assert isinstance(outcome, Accepted)
    info = hybrids()["qwen3.6-35b-a3b"]
    runtime = resolve({}, info, devices.find("cpu"), RELEASES[f"vllm=={version}"]).runtime
    assert runtime is not None
    assert (outcome.runtime["cache.block_size"], runtime.block_size) == (block, block)
