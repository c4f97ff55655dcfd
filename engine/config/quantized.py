"""What a checkpoint says of its own quantization: the method, the dtype of keys and values, the bits of a weight."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BESIDE: Final = "hf_quant_config.json"
"""File beside `config.json` in which NVIDIA ModelOpt up to 0.29 says what newer releases say in `config.json`."""

ALGORITHMS: Final = {
    "FP8": "modelopt",
    "FP8_PER_CHANNEL_PER_TOKEN": "modelopt",
    "FP8_PB_WO": "modelopt",
    "NVFP4": "modelopt_fp4",
    "MIXED_PRECISION": "modelopt_mixed",
}
"""`quant_algo` of ModelOpt -> vLLM's method (vllm/transformers_utils/model_arch_config_convertor.py)."""
KV_ALGORITHMS: Final = {"fp8": "fp8_e4m3", "nvfp4": "nvfp4"}
"""Name of ModelOpt, in lower case -> cache dtype of vLLM (vllm/utils/torch_utils.py)."""


@dataclass(frozen=True, slots=True)
class CheckpointQuantization:
    """Quantization that a checkpoint already has.

    Attributes:
        method: Name of the method, as vLLM spells it.
        said_by: Where it stands: `quantization_config`, or the file beside `config.json`.
        kv_cache_dtype: What the checkpoint asks keys and values to be stored in; None where it asks for nothing.
        weight_bytes: Bytes of a quantized weight with its share of the scales; None where the format is not read.
        spares_experts: Whether something that stays unquantized may be a routed expert.
    """

    method: str
    said_by: str
    kv_cache_dtype: str | None
    weight_bytes: float | None
    spares_experts: bool


def with_file_beside(config: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Add what `hf_quant_config.json` says to a `config.json` that says nothing of quantization, as vLLM does.

    Args:
        config: The parsed `config.json`.
        folder: Where it lies.

    Raises:
        ValueError: The file is no JSON object; the message says which and why.
    """
    path = folder / BESIDE
    if config.get("quantization_config") is not None or not path.is_file():
        return config
    try:
        beside = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(beside, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(beside).__name__}")  # noqa: TRY004 -- one kind
    return {**config, "quantization_config": beside}


def read_quantization(outer: Mapping[str, Any], text: Mapping[str, Any]) -> CheckpointQuantization | None:
    """Read the quantization of a checkpoint.

    Args:
        outer: The parsed `config.json`, with the file beside it.
        text: The part of it that describes the language model; looked at where the outer one says nothing.

    Returns:
        What it says, None where it is not quantized.
    """
    found = next(
        (mapping for mapping in (outer, text) if isinstance(mapping.get("quantization_config"), Mapping)), None
    )
    if found is None:
        return None
    config: Mapping[str, Any] = found["quantization_config"]
    inner = config.get("quantization")
    inner = inner if isinstance(inner, Mapping) else {}
    algorithm = str(inner.get("quant_algo") or config.get("quant_algo") or "").upper()
    declared = str(config.get("quant_method") or "").lower().replace("compressed_tensors", "compressed-tensors")
    # Only with its producer named does the file beside config.json decide the dtype of keys and values.
    producer = config.get("producer")
    modelopt = isinstance(producer, Mapping) and producer.get("name") == "modelopt"
    if modelopt and inner:
        declared = ALGORITHMS.get(algorithm, declared)
    method = declared or ALGORITHMS.get(algorithm) or "unknown"
    kv_cache_dtype = (
        _kv_cache_dtype(declared, config, inner) if found is outer or method == "compressed-tensors" else None
    )
    return CheckpointQuantization(
        method=method,
        said_by=BESIDE if inner else "quantization_config",
        kv_cache_dtype=kv_cache_dtype,
        weight_bytes=_weight_bytes(method, config),
        spares_experts=_spares_experts(config, inner),
    )


def _kv_cache_dtype(method: str, config: Mapping[str, Any], inner: Mapping[str, Any]) -> str | None:
    if method == "compressed-tensors":  # vllm/model_executor/layers/attention/attention.py: when a layer is built
        return "fp8" if isinstance(config.get("kv_cache_scheme"), Mapping) else None
    if not method.startswith("modelopt"):
        return None
    places = ((inner, "kv_cache_scheme"), (config, "kv_cache_scheme"), (inner, "kv_cache_quant_algo"))
    said = next((found for mapping, key in places if (found := mapping.get(key))), config.get("kv_cache_quant_algo"))
    if isinstance(said, Mapping):
        eight = said.get("dynamic") is False and said.get("num_bits") == 8
        four = said.get("num_bits") == 4
        said = ("fp8" if eight else "nvfp4" if four else None) if said.get("type") == "float" else None
    return KV_ALGORITHMS.get(str(said).lower()) if said else None


FP8, NVFP4, MXFP4 = 1.0, 4 / 8 + 1 / 16, 4 / 8 + 1 / 32
"""Bytes of a weight: eight bits, and four with a scale of one byte for 16 or for 32 of them."""
SCALE: Final = 2
"""Bytes of a scale of AWQ, GPTQ and compressed integers."""


def _weight_bytes(method: str, config: Mapping[str, Any]) -> float | None:
    if method == "modelopt_fp4":
        return NVFP4
    if method in {"fp8", "fbgemm_fp8", "modelopt"}:
        return FP8
    if method in {"mxfp4", "gpt_oss_mxfp4"}:
        return MXFP4
    if method == "experts_int8":
        return 1.0
    if method in {"awq", "gptq", "auto_gptq", "auto_awq", "awq_marlin", "gptq_marlin"}:
        return _grouped(config.get("bits", config.get("w_bit")), config.get("group_size", config.get("q_group_size")))
    return _compressed(config) if method == "compressed-tensors" else None


def _grouped(bits: object, group: object) -> float | None:
    """Packed integers with a scale and a zero point for each group; a group below 1 is a whole row."""
    if not isinstance(bits, int) or isinstance(bits, bool) or bits not in range(1, 17):
        return None
    if not isinstance(group, int) or isinstance(group, bool) or group < 1:
        return bits / 8
    return bits / 8 + (SCALE + bits / 8) / group


def _compressed(config: Mapping[str, Any]) -> float | None:
    """The one format of all groups; None where there are several."""
    groups = config.get("config_groups")
    sizes = set()
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping) or not isinstance(bits := weights.get("num_bits"), int):
            return None
        size = weights.get("group_size")
        if weights.get("type") == "float" and bits == 4:
            sizes.add(NVFP4 if size == 16 else MXFP4 if size == 32 else None)
        elif weights.get("type") == "float":
            sizes.add(bits / 8)
        else:
            sizes.add(bits / 8 + (SCALE / size if isinstance(size, int) and size > 0 else 0))
    return sizes.pop() if len(sizes) == 1 else None


def _spares_experts(config: Mapping[str, Any], inner: Mapping[str, Any]) -> bool:
    """Whether a name or pattern that stays unquantized speaks of experts that tokens are routed to."""
    names: list[str] = []
    for mapping in (config, inner):
        for key in ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers"):
            listed = mapping.get(key)
            names += [str(name) for name in listed] if isinstance(listed, list | tuple) else []
        dynamic = mapping.get("dynamic")
        names += [str(name) for name in dynamic if str(name).startswith("-:")] if isinstance(dynamic, Mapping) else []
    everything = {"*", "re:.*", "-:.*"}
    return any(
        name in everything or ("expert" in name.replace("shared_expert", "") and "mtp" not in name) for name in names
    )
