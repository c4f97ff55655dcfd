"""Flags in vLLM's spelling become keywords, and keywords become flags again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.config.options import KNOWN
from staticfire.engine.config.resolution import Fix
from staticfire.engine.config.typed import IMPLEMENTED
from staticfire.harness.cli.flags import fix_words, flags, kinds, parse


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (["--block-size", "32"], {"block_size": 32}),
        (["--block-size=32"], {"block_size": 32}),
        (["--block_size", "32"], {"block_size": 32}),
        (["--enable-prefix-caching"], {"enable_prefix_caching": True}),
        (["--no-enable-prefix-caching"], {"enable_prefix_caching": False}),
        (["--disable-prefix-caching"], {"enable_prefix_caching": False}),
        (["--disable-log-stats"], {"disable_log_stats": True}),
        (["--no-disable-log-stats"], {"disable_log_stats": False}),
        (["--enable-prefix-caching", "--no-enable-prefix-caching"], {"enable_prefix_caching": False}),
        (["--max-model-len", "4k"], {"max_model_len": 4000}),
        (["--max-model-len", "4K"], {"max_model_len": 4096}),
        (["--max-model-len", "1.5k"], {"max_model_len": 1500}),
        (["--max-model-len", "auto"], {"max_model_len": -1}),
        (["--max-model-len", "-1"], {"max_model_len": -1}),
        (["--data-parallel-address", "10.0.0.7", "--data-parallel-external-lb"],
         {"data_parallel_address": "10.0.0.7", "data_parallel_external_lb": True}),
        (["--enable-multiprocessing"], {"enable_multiprocessing": True}),
        (["--gpu-memory-utilization", "0.5"], {"gpu_memory_utilization": 0.5}),
        (["--dtype", "bfloat16"], {"dtype": "bfloat16"}),
        (["-tp", "2", "-pp=3", "-dp", "4", "-q", "fp8"],
         {"tensor_parallel_size": 2, "pipeline_parallel_size": 3, "data_parallel_size": 4, "quantization": "fp8"}),
        (["--seed", "-1"], {"seed": -1}),
        (["--cudagraph-capture-sizes", "1", "2", "4"], {"cudagraph_capture_sizes": ["1", "2", "4"]}),
        (["--compilation-config.mode", "3", "--compilation-config.level=2"],
         {"compilation_config": {"mode": "3", "level": "2"}}),
        (["--speculative-config", '{"method": "ngram"}'], {"speculative_config": '{"method": "ngram"}'}),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, list) else None,
)  # fmt: skip
def test_spellings(words, typed):
    parsed = parse(["model", *words])
    assert parsed.typed == typed
    assert parsed.positional == ["model"]
    assert parse([*words, "--", "--model"]).positional == ["--model"]


def test_all_faults_are_told_at_once():
    words = [
        "--blok-size",
        "--enable-prefix-caching=yes",
        "--max-num-seqs",
        "1.5",
        "--block-size.x",
        "3",
        "--block-size=",
    ]
    faults = parse([*words, "--jsn", "--seed"]).faults
    expected = (
        "--blok-size: no such option of the engine; did you mean --block-size?",
        "--enable-prefix-caching=yes: takes no value",
        "--max-num-seqs 1.5: should be a whole number",
        "--block-size.x: --block-size has no parts",
        "--block-size '': should be a whole number",
        "--jsn: no such option of the engine; did you mean --json?",
        "--seed: needs a value",
    )
    assert len(faults) == len(expected)
    assert all(part in fault for part, fault in zip(expected, faults, strict=True))


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.1k", 1100), ("9007199254740993k", 9007199254740993000), ("9" * 400 + ".5k", int("9" * 400 + "500"))],
    ids=["decimal", "beyond a double", "beyond every double"],
)
def test_scaled_numbers_are_exact(text, number):
    assert parse(["--max-model-len", text]).typed == {"max_model_len": number}


def test_values_that_look_like_flags_come_back():
    typed = {"tokenizer": "-x", "seed": -1}
    assert parse(flags(typed)).typed == typed


@pytest.mark.parametrize(
    "words", [["--no-block-size"], ["-x"], ["--disable-block-size"], ["--"[:1] + "tpp", "2"]], ids=str
)
def test_unknown_spellings(words):
    assert "no such option" in parse(words).faults[0]


def test_every_keyword_has_a_flag():
    assert set(kinds()) == IMPLEMENTED | set(KNOWN)


typed_values = st.fixed_dictionaries(
    {},
    optional={
        "block_size": st.integers(-5, 10**9),
        "enable_prefix_caching": st.booleans(),
        "enable_chunked_prefill": st.booleans(),
        "gpu_memory_utilization": st.floats(0.01, 1),
        "dtype": st.sampled_from(["auto", "float32"]),
        "disable_log_stats": st.booleans(),
        "logits_processors": st.lists(st.sampled_from(["a", "b"]), min_size=1),
    },
)


@given(typed=typed_values)
def test_flags_read_back_as_what_they_were_made_from(typed):
    assert parse(flags(typed)).typed == typed


def test_a_fix_in_words():
    typed = {"quantization": "fp8", "enable_chunked_prefill": False, "max_model_len": 9}
    fix = Fix(set={"enable_prefix_caching": False, "max_model_len": 8}, drop=("quantization",))
    assert fix_words(fix, typed) == (
        "add --no-enable-prefix-caching; change --max-model-len 9 to --max-model-len 8; drop --quantization fp8"
    )
