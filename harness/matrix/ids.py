"""Cell ids that read aloud, such as `jamba-tiny-fp32-int8-align-apc-b32-t128`.

The order of the parts follows the table below and the axes' names, never the file; a value that is left unset has no
part. So an id survives any reordering of axes, values and rows.
"""

import re
from collections.abc import Mapping
from typing import Any

from staticfire.harness.matrix.cell import UNSET

_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_PARTS: dict[str, Mapping[Any, str] | str] = {
    "model": "",
    "dtype": _DTYPES,
    "quantization": {"experts_int8": "int8"},
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "data_parallel_size": "dp",
    "enable_multiprocessing": {True: "mp", False: "nomp"},
    "kernel_backend": "",
    "kv_cache_dtype": "kv-",
    "mamba_cache_dtype": "state-",
    "mamba_ssm_cache_dtype": "ssm-",
    "mamba_cache_mode": {"align": "align", "none": "nostates", "all": "allstates"},
    "enable_prefix_caching": {True: "apc", False: "noapc"},
    "enable_chunked_prefill": {True: "chunked", False: "unchunked"},
    "block_size": "b",
    "max_num_batched_tokens": "t",
    "long_prefill_token_threshold": "cut",
    "scheduling_policy": {"priority": "prio"},
    "max_num_seqs": "s",
    "max_model_len": "len",
}
"""Axis -> the names of its values, or a prefix for them; in the order of the parts."""


def cell_id(axes: Mapping[str, object]) -> str:
    """Name a cell by its axes."""
    order = [name for name in _PARTS if name in axes] + sorted(name for name in axes if name not in _PARTS)
    return "-".join(part for name in order if (part := label(name, axes[name])))


def label(axis: str, value: object) -> str:
    """Name one value of an axis; empty for a value that is left unset."""
    if value == UNSET:
        return ""
    known = _PARTS.get(axis)
    if known is None:
        return _generic(axis, value)
    if isinstance(known, str):
        return known + _clean(value)
    return known[value] if value in known else _clean(value)


def _generic(axis: str, value: object) -> str:
    """`enable-x`, `no-enable-x`, or `x-value` for an axis without names of its own."""
    if isinstance(value, bool):
        return ("" if value else "no-") + _clean(axis)
    return f"{_clean(axis)}-{_clean(value)}"


def _clean(value: object) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", str(value).lower()).strip("-")
