"""Architectures: which ones the engine registers, and a configuration where only the name of one is known."""

import contextlib
import importlib
import re
from typing import Any

# Sizes that can change together without breaking what a configuration checks about itself. Key and value heads stay:
# states then grow against them, and with that the block sizes that the worker settles.
_SIZES = re.compile(
    r"^(hidden_size|intermediate_size|moe_intermediate_size|shared_expert_intermediate_size|ffn_dim|d_model|"
    r"num_attention_heads|n_head|n_embd|vocab_size|max_position_embeddings|"
    r"mamba_d_ssm|mamba_n_heads|mamba_num_heads|n_mamba_heads|linear_num_key_heads|linear_num_value_heads)$"
)


def list_architectures(inspect: bool, failed: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Every architecture of the engine's registry.

    Args:
        inspect: Also find out what the class is; costs an import each.
        failed: Where reasons of failed inspections are noted.

    Returns:
        Name -> `hybrid`, `attention_free`, `generates`, or `failed` with the reason; nothing if not inspected.
    """
    registry = importlib.import_module("vllm.model_executor.models").ModelRegistry
    names = sorted(registry.get_supported_archs())
    if not inspect:
        return {name: {} for name in names}
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        info = registry._try_inspect_model_cls(name)  # noqa: SLF001
        if info is None:
            found[name] = {"failed": failed.get(name, "no reason was given")}
        else:
            found[name] = {
                "hybrid": bool(info.is_hybrid),
                "attention_free": bool(info.is_attention_free),
                "generates": bool(info.is_text_generation_model),
            }
    return found


def default_config(architecture: str, sizes: int) -> dict[str, Any]:
    """Make a configuration of an architecture with the sizes that transformers (or the engine) gives by default.

    Args:
        architecture: A class name, such as `JambaForCausalLM`.
        sizes: 1 for the default sizes; 2 for twice the widths, query heads, states, vocabulary and context.

    Returns:
        `config`, the mapping of a config.json; or `unknown`, why there is none.
    """
    kind = _config_class(architecture)
    if kind is None:
        return {"unknown": f"transformers and the engine name no configuration class for {architecture}"}
    config = kind().to_dict()
    if sizes > 1:
        config = kind(**_resized(config, sizes)).to_dict()
    config["architectures"] = [architecture]
    config.setdefault("model_type", kind.model_type)
    if not config.get("dtype") and not config.get("torch_dtype"):
        config["dtype"] = "bfloat16"
    config.pop("transformers_version", None)
    return {"config": config}


def _resized(config: dict[str, Any], sizes: int) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            changed[key] = _resized(value, sizes)
        elif isinstance(value, int) and not isinstance(value, bool) and _SIZES.match(key):
            changed[key] = value * sizes
        else:
            changed[key] = value
    for key in ("model_type", "architectures", "head_dim"):
        if changed.get(key) is None:
            changed.pop(key, None)
    return changed


def _config_class(architecture: str) -> Any:
    """The configuration class of an architecture; where only a base class of it has one, that."""
    names = [architecture]
    registry = importlib.import_module("vllm.model_executor.models").ModelRegistry
    if architecture in registry.models:
        with contextlib.suppress(Exception):  # a class that cannot be imported has no base classes to go by
            names += [base.__name__ for base in registry.models[architecture].load_model_cls().__mro__]
    found = (_by_table(name) or _by_name(name) for name in dict.fromkeys(names))
    return next((kind for kind in found if kind is not None), None)


def _by_table(architecture: str) -> Any:
    """By the tables of transformers that map model types to classes."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    for name, table in vars(auto).items():
        if name.endswith("_MAPPING_NAMES"):
            for model_type, classes in table.items():
                if architecture in ((classes,) if isinstance(classes, str) else tuple(classes)):
                    return _mapped(model_type)
    return None


def _by_name(architecture: str) -> Any:
    """By the name: `KimiLinearForCausalLM` has a `KimiLinearConfig`, in transformers or in the engine."""
    stem = re.sub(r"(For[A-Z]\w+|Model|LMHeadModel)$", "", architecture).lower()
    names = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES
    for model_type, class_name in names.items():
        if class_name.removesuffix("Config").lower() == stem:
            return _mapped(model_type)
    try:
        own = importlib.import_module("vllm.transformers_utils.configs")
    except ImportError:
        return None
    for class_name in getattr(own, "__all__", dir(own)):
        if class_name.endswith("Config") and class_name.removesuffix("Config").lower() == stem:
            return getattr(own, class_name)
    return None


def _mapped(model_type: str) -> Any:
    try:
        return importlib.import_module("transformers").CONFIG_MAPPING[model_type]
    except (KeyError, ImportError, AttributeError):
        return None
