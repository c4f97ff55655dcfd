"""What `vllm_runner` asks an engine for: the keywords of vLLM's own test suite, and their defaults.

The plugin runs this function and `staticfire check` reads it, so there is one set of defaults. Reading follows what is
called `LLM`: that is what takes an engine's keywords, here as in vLLM's suite.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

Engine = TypeVar("Engine")


def start_engine(
    LLM: Callable[..., Engine],
    model: str,
    /,
    *,
    runner: str | None = "auto",
    convert: str | None = "auto",
    tokenizer_name: str | None = None,
    tokenizer_mode: str | None = "auto",
    trust_remote_code: bool | None = True,
    seed: int | None = 0,
    max_model_len: int | None = 1024,
    dtype: str | None = "auto",
    disable_log_stats: bool | None = True,
    tensor_parallel_size: int | None = 1,
    block_size: int | None = 16,
    enable_chunked_prefill: bool | None = False,
    enforce_eager: bool | None = False,
    **more: Any,
) -> Engine:
    """Start an engine with what a test types, and with the suite's default for what it does not.

    Args:
        LLM: What starts it: called with the model and with every keyword that is not None.
        model: As the test names the model.
        runner: This and all others are engine keywords; None asks for the engine's own default.
        convert: See `runner`.
        tokenizer_name: The engine's `tokenizer`.
        tokenizer_mode: See `runner`.
        trust_remote_code: See `runner`.
        seed: See `runner`.
        max_model_len: Tokens of the longest sequence.
        dtype: See `runner`.
        disable_log_stats: See `runner`.
        tensor_parallel_size: Ranks.
        block_size: Tokens of a cache block.
        enable_chunked_prefill: See `runner`.
        enforce_eager: See `runner`.
        **more: Keywords for which the suite has no default.

    Returns:
        What `LLM` returned.
    """
    keywords = {
        "runner": runner,
        "convert": convert,
        "tokenizer": tokenizer_name,
        "tokenizer_mode": tokenizer_mode,
        "trust_remote_code": trust_remote_code,
        "seed": seed,
        "max_model_len": max_model_len,
        "dtype": dtype,
        "disable_log_stats": disable_log_stats,
        "tensor_parallel_size": tensor_parallel_size,
        "block_size": block_size,
        "enable_chunked_prefill": enable_chunked_prefill,
        "enforce_eager": enforce_eager,
        **more,
    }
    return LLM(model, **{keyword: value for keyword, value in keywords.items() if value is not None})


SIGNATURE: Final = tuple(inspect.getfullargspec(start_engine).kwonlyargs)
"""Every keyword that has a default here."""
