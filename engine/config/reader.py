"""`config.json` -> `ModelInfo`."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from staticfire.engine.config.architectures import architecture_fault
from staticfire.engine.config.errors import ConfigError, Fault
from staticfire.engine.config.families.base import Reader
from staticfire.engine.config.families.registry import BY_MODEL_TYPE
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.quantized import read_quantization

DECLARABLE_DTYPES: Final = ("float64", "float32", "float16", "bfloat16")
DEFAULT_CONTEXT: Final = 2048
"""Context of a model whose config.json declares none and whose family has none (pure recurrent ones), as in vLLM."""
CONTEXTS: Final[dict[str, int]] = {
    "jamba": 262144,
    "bamba": 262144,
    "nemotron_h": 4096,
    "falcon_h1": 8192,
    "qwen3": 32768,
    "qwen3_next": 32768,
    "qwen3_5": 32768,
    "qwen3_5_text": 32768,
    "qwen3_5_moe": 32768,
    "qwen3_5_moe_text": 32768,
}
"""`model_type` -> context that its configuration class in transformers has by default."""


def model_info(hf: Mapping[str, Any], name: str) -> ModelInfo:
    """Read what a Hugging Face `config.json` says about layers, states and sizes.

    A nested `text_config` (Qwen3.5 and later) is read in place of the outer mapping.

    Args:
        hf: The parsed `config.json`.
        name: What the user called the model; it stands in messages.

    Returns:
        The model as configuration sees it.

    Raises:
        ConfigError: The family is unknown or keys are missing or malformed; all faults at once.
    """
    if not isinstance(hf, Mapping):
        raise ConfigError([Fault("model-config", "config.json", "config.json must hold a mapping")], _title(name))
    nested = hf.get("text_config")
    text = nested if isinstance(nested, Mapping) else hf
    model_type = text.get("model_type", hf.get("model_type"))
    if not isinstance(model_type, str) or model_type not in BY_MODEL_TYPE:
        raise ConfigError([_unknown_family(model_type)], _title(name))
    family = BY_MODEL_TYPE[model_type]
    reader = Reader(text, "text_config." if text is not hf else "")
    parts = family.read(reader)
    attention = any("attention" in layer.mixer for layer in parts.layers)
    info = ModelInfo(
        name=name,
        architecture=_architecture(hf, text, model_type, family.architectures),
        model_type=model_type,
        layers=parts.layers,
        hidden_size=reader.size("hidden_size"),
        num_attention_heads=reader.size("num_attention_heads") if attention else 0,
        num_kv_heads=reader.kv_heads() if attention else 0,
        head_dim=parts.head_dim,
        vocab_size=reader.size("vocab_size"),
        max_position_embeddings=reader.size("max_position_embeddings", CONTEXTS.get(model_type, DEFAULT_CONTEXT)),
        num_experts=parts.num_experts,
        num_experts_per_tok=parts.num_experts_per_tok,
        dtype=_dtype(reader, hf),
        ssm_dtype=parts.ssm_dtype,
        state_shapes=parts.states,
        hf=hf,
        parameters=parts.parameters,
        expert_parameters=parts.expert_parameters,
        ssm_dtype_because=parts.ssm_dtype_because,
        chunk_size=parts.chunk_size,
        mlp_widths=parts.mlp_widths,
        expert_width=parts.expert_width,
        quantization=read_quantization(hf, text),
    )
    if text is hf and (wrong := architecture_fault(info.architecture, model_type)):
        reader.faults.append(wrong)
    if attention and info.num_attention_heads % info.num_kv_heads:
        reader.fault(
            "num_key_value_heads",
            f"config.json: num_attention_heads={info.num_attention_heads} is no multiple of "
            f"num_key_value_heads={info.num_kv_heads}",
            info.num_kv_heads,
        )
    if reader.faults:
        raise ConfigError(dict.fromkeys(map(_hashable, reader.faults)), _title(name))
    return info


def _hashable(fault: Fault) -> Fault:
    return Fault(fault.type, fault.field, fault.message, value=repr(fault.value))


def _title(name: str) -> str:
    return f"Model {name!r} cannot be read"


def _architecture(hf: Mapping[str, Any], text: Mapping[str, Any], model_type: str, known: tuple[str, ...]) -> str:
    declared = hf.get("architectures") or text.get("architectures")
    if isinstance(declared, list | tuple) and declared and isinstance(declared[0], str):
        return declared[0]
    prefix = model_type.removesuffix("_text").replace("_", "")
    return next((name for name in known if name.lower().replace("_", "").startswith(prefix)), known[0])


def _unknown_family(model_type: object) -> Fault:
    if not isinstance(model_type, str):
        return Fault(
            "model-config", "model_type", f"config.json has no model_type (found {model_type!r})", value=model_type
        )
    near = get_close_matches(model_type, BY_MODEL_TYPE, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return Fault(
        "model-config",
        "model_type",
        f"model_type={model_type!r} is not a family we can read{hint} (known: {', '.join(sorted(BY_MODEL_TYPE))})",
        value=model_type,
    )


def _dtype(reader: Reader, hf: Mapping[str, Any]) -> str:
    """The declared dtype (`dtype`, or `torch_dtype` in older files; outer mapping last); float32 where absent."""
    for mapping in (reader.hf, hf):
        for key in ("dtype", "torch_dtype"):
            declared = mapping.get(key)
            if declared is None:
                continue
            if declared not in DECLARABLE_DTYPES:
                allowed = ", ".join(DECLARABLE_DTYPES)
                reader.fault(key, f"config.json: {key}={declared!r} must be one of {allowed}", declared)
                return "float32"
            return str(declared)
    return "float32"
