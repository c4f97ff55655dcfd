"""What the worker makes of an accepted configuration, by the engine's own arithmetic over layers that stand in.

The worker asks the built model's layers for their attention backend and then settles block sizes. Building a model
needs its weights' memory; the arithmetic needs only one attention layer with the backend that the engine's own
selection picks, and one state layer that says to which grid its checkpoints are bound.
"""

import importlib
from contextlib import nullcontext
from typing import Any

from .capacity import STOOD_IN, check_capacity
from .device import Facts
from .flatten import ABSENT, plain
from .packages import Packages
from .refusal import NotKnownError, RefusedError
from .selection import select

FIELDS = (
    "block_size",
    "mamba_block_size",
    "mamba_page_size_padded",
    "skip_page_size_padded",
    "mamba_cache_mode",
    "enable_prefix_caching",
)


def settle(
    config: Any, platform: Any, facts: Facts, packages: Packages
) -> "tuple[dict[str, Any], dict[str, Any] | str]":
    """Run the worker's start-up arithmetic on a configuration, which it changes.

    Args:
        config: An accepted `VllmConfig`.
        platform: The engine's current platform.
        facts: The device, for its memory.
        packages: What the engine requires on the device.

    Returns:
        `cache.block_size` and the like as the worker will have them, and the attention backend; then what is known of
        the number of cache blocks, or why nothing is.

    Raises:
        NotKnownError: The worker's part cannot be asked.
        RefusedError: The worker refuses.
        Exception: What the engine raises otherwise.
    """
    model, cache = config.model_config, config.cache_config
    if model is None or cache is None:
        raise NotKnownError("a configuration without a model, which no worker runs")
    if not hasattr(platform, "update_block_size_for_backend"):
        raise NotKnownError("this engine settles no block sizes at start-up where the probe looks for it")
    if getattr(model, "is_attention_free", False) and not getattr(model, "is_hybrid", False):
        return _said(cache), "a model without attention layers"
    backend, presented = select(config, packages, **_latent(model))
    if _windows(model):
        _check_windows(config, packages)
    with packages.presented() if presented else nullcontext():
        state = _align(config, platform, backend)
        said = {**_said(cache), "attention_backend": backend.get_name()}
        return said, check_capacity(config, backend, state, facts)


def _latent(model: Any) -> "dict[str, Any]":
    """How a layer of latent attention differs from a plain one: it may choose among what it keeps."""
    sparse = getattr(model, "use_mla", False) and getattr(model.hf_text_config, "index_topk", None)
    return {"use_sparse": True} if sparse else {}


def _windows(model: Any) -> bool:
    """Whether some attention layers look back over a window only."""
    kinds = getattr(model.hf_text_config, "layer_types", None) or ()
    return bool(getattr(model.hf_text_config, "sliding_window", None)) and (
        not kinds or any("sliding" in str(kind) for kind in kinds)
    )


def _check_windows(config: Any, packages: Packages) -> None:
    """Let the engine pick a backend for the layers with a window, too."""
    try:
        select(config, packages, has_sliding_window=True)
    except RefusedError as error:
        raise RefusedError(error.error, error.phase, STOOD_IN, error.values) from error.error


def _align(config: Any, platform: Any, backend: Any) -> Any:
    """Let the platform settle the block sizes; return the state layer that stood in, None without one."""
    layers = config.compilation_config.static_forward_context
    before = dict(layers)
    layers["stand_in.attention"] = _layer(_base("attention_layer_base", "AttentionLayerBase"), backend)
    try:
        state = _state_layer(config) if getattr(config.model_config, "is_hybrid", False) else None
        if state is not None and hasattr(type(state), "get_prefill_checkpoint_alignment"):
            layers["stand_in.state"] = state
        platform.update_block_size_for_backend(config)
        if hasattr(config, "validate_block_size"):
            config.validate_block_size()
    except AssertionError as error:
        # An assertion may be about the layers that stand in.
        raise RefusedError(error, doubt=STOOD_IN) from error
    finally:
        layers.clear()
        layers.update(before)
    _check_kernel_size(config, backend)
    return state


def _check_kernel_size(config: Any, backend: Any) -> None:
    """Let the worker cut a block into sizes of the kernel, as it does when it makes the cache."""
    try:
        choose = importlib.import_module("vllm.v1.worker.utils").select_common_block_size
    except (ImportError, AttributeError):
        return
    with importlib.import_module("vllm.config").set_current_vllm_config(config):
        try:
            choose(config.cache_config.block_size, [backend])
        except ValueError as error:
            raise RefusedError(error, doubt=STOOD_IN) from error


def _said(cache: Any) -> dict[str, Any]:
    values = {f"cache.{name}": plain(getattr(cache, name)) for name in FIELDS if hasattr(cache, name)}
    return {name: value for name, value in values.items() if value is not ABSENT}


def _base(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"vllm.model_executor.layers.{module}"), name)


def _layer(base: Any, backend: Any, answers: dict[str, Any] | None = None) -> Any:
    """A layer that answers what the arithmetic asks, and nothing else."""
    body: dict[str, Any] = dict.fromkeys(base.__abstractmethods__, lambda *_: None)
    body["get_attn_backend"] = lambda _: backend
    for name, value in (answers or {}).items():
        body[name] = value if isinstance(value, str) else lambda *_, value=value: value
    return object.__new__(type("StandInLayer", (base,), body))


class _StateBackend:
    """The backend of a state layer: none that the arithmetic looks at."""

    @staticmethod
    def is_ssm() -> bool:
        """It is one."""
        return True


def _state_layer(config: Any) -> Any:
    """A state layer of the model's kind, with the shapes that the model's class computes."""
    registry = importlib.import_module("vllm.model_executor.models").ModelRegistry
    model_class, _ = registry.resolve_model_cls(config.model_config.architecture, model_config=config.model_config)
    answers = {
        "get_state_shape": model_class.get_mamba_state_shape_from_config(config),
        "get_state_dtype": model_class.get_mamba_state_dtype_from_config(config),
        "get_prefill_checkpoint_alignment": _checkpoint_alignment(config, model_class),
        "mamba_type": "mamba2",
    }
    return _layer(_base("mamba.abstract", "MambaBase"), _StateBackend, answers)


def _checkpoint_alignment(config: Any, model_class: Any) -> int | None:
    """To which multiple of tokens the model's state layers bind a block, as their constructors decide it."""
    kinds = _state_kinds(config, model_class)
    if config.cache_config.mamba_cache_mode == "align" and kinds == {"gated_delta_net"}:
        layer = importlib.import_module("vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn")
        metadata = importlib.import_module("vllm.v1.attention.backends.gdn_attn")
        resolve = getattr(layer, "_resolve_gdn_prefill_backend", None)
        alignment = getattr(metadata, "FLASHINFER_GDN_CHECKPOINT_ALIGNMENT", None)
        if resolve is not None and alignment is not None and resolve(config)[1] == "flashinfer":
            return int(alignment)
    return None


def _state_kinds(config: Any, model_class: Any) -> set[str]:
    """Which kinds of state the model has, by the calculators that its class calls for their shapes."""
    utils = importlib.import_module("vllm.model_executor.layers.mamba.mamba_utils")
    calculator = utils.MambaStateShapeCalculator
    kinds: set[str] = set()
    saved = {name: value for name, value in vars(calculator).items() if name.endswith("_state_shape")}

    def watched(name: str, real: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            kinds.add(name.removesuffix("_state_shape"))
            return real(*arguments, **keywords)

        return staticmethod(call)

    for name in saved:
        setattr(calculator, name, watched(name, getattr(calculator, name)))
    try:
        model_class.get_mamba_state_shape_from_config(config)
    finally:
        for name, value in saved.items():
            setattr(calculator, name, value)
    return kinds
