"""How many cache blocks there can be at most: the device's whole share of memory, as if the weights weighed nothing.

What does not even fit then is refused on every machine with that device; whether the rest fits depends on weights and
activations, which only a real start can measure.
"""

import importlib
import inspect
import re
import traceback
from typing import Any

from .device import Facts


def check_capacity(config: Any, backend: Any, state_layer: Any, facts: Facts) -> "dict[str, Any] | str":
    """Plan the cache of a hybrid model with the engine's own planner, and let it check `max_num_seqs` against that.

    Args:
        config: An accepted `VllmConfig` after the worker's block-size arithmetic.
        backend: The attention backend of its attention layers.
        state_layer: A layer that stands in for its state layers and knows their shapes.
        facts: The device.

    Returns:
        `blocks_at_most`, or why the planner cannot be asked.

    Raises:
        Exception: What the engine raises because memory or blocks do not suffice.
    """
    try:
        specs = _specs(config, backend, state_layer)
        planned = _planned(config, backend, specs, _memory(config, facts))
    except _UnknownLayersError as error:
        return str(error)
    except Exception as error:
        if any("memory" in frame.name for frame in traceback.extract_tb(error.__traceback__)):
            raise
        # The stand-ins say too little for this engine's planner.
        return f"{type(error).__name__}: {str(error)[:200]}"
    _check_graphs(config, backend, planned)
    return {"blocks_at_most": planned.num_blocks}


# Plans by what they depend on: one takes longer than all the rest of a question, and suites vary other things.
_PLANS: dict[str, Any] = {}
_MOST_PLANS = 512
_WIDTHS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "prefill_context_parallel_size",
)


def _planned(config: Any, backend: Any, stages: "list[dict[str, Any]]", memory: int) -> Any:
    scheduler = config.scheduler_config
    key = repr(
        (
            [[(len(specs), spec) for spec in {id(spec): spec for spec in specs.values()}.values()] for specs in stages],
            [sum(name.startswith("attention") for name in specs) for specs in stages],
            memory,
            backend,
            config.cache_config,
            config.kv_transfer_config,
            config.model_config.max_model_len,
            getattr(config, "num_speculative_tokens", 0),
            scheduler.max_num_batched_tokens,
            getattr(scheduler, "disable_hybrid_kv_cache_manager", None),
            [getattr(config.parallel_config, name, None) for name in _WIDTHS],
        )
    )
    if key not in _PLANS:
        _resolve_layout(config, backend, [spec for specs in stages for spec in specs.values()])
        if len(_PLANS) >= _MOST_PLANS:
            _PLANS.clear()
        _PLANS[key] = _plan(config, stages, memory)
    return _PLANS[key]


def _memory(config: Any, facts: Facts) -> int:
    cache = config.cache_config
    given = getattr(cache, "kv_cache_memory_bytes", None)
    return int(given or facts.memory * cache.gpu_memory_utilization)


# Kinds of layers as configurations of models name them; others (`mlp`, `moe`) keep nothing between steps.
_ATTENTION = frozenset({"attention", "full_attention", "hybrid"})
_STATE = frozenset({"mamba", "mamba2", "linear_attention", "conv", "hybrid"})
_OTHER = re.compile(r"sliding|chunked|window|compress|sparse")


class _UnknownLayersError(Exception):
    """The model has layers whose caches are not those of a plain attention layer and a plain state layer."""


def _counts(config: Any) -> "list[tuple[int, int]]":
    """Attention and state layers of each pipeline stage."""
    model, parallel = config.model_config, config.parallel_config
    if getattr(model, "use_mla", False):
        raise _UnknownLayersError("latent attention keeps less than a plain attention layer")
    text = model.hf_text_config
    kinds = getattr(text, "layers_block_type", None) or getattr(text, "layer_types", None)
    if getattr(text, "sliding_window", None) or any(_OTHER.search(str(kind)) for kind in kinds or ()):
        raise _UnknownLayersError("some attention layers keep less than a plain one")
    rank, counts = parallel.rank, []
    try:
        for stage in range(parallel.pipeline_parallel_size):
            parallel.rank = stage * parallel.tensor_parallel_size
            counts.append(_stage(model, parallel, kinds))
    finally:
        parallel.rank = rank
    return counts


def _stage(model: Any, parallel: Any, kinds: Any) -> "tuple[int, int]":
    if kinds:
        start, end = model.get_layers_start_end_indices(parallel)
        own = list(kinds)[start:end]
        return sum(kind in _ATTENTION for kind in own), sum(kind in _STATE for kind in own)
    states = (model.get_num_layers_by_block_type(parallel, kind) for kind in ("mamba", "linear_attention", "conv"))
    return model.get_num_layers_by_block_type(parallel, "attention"), max(states)


def _specs(config: Any, backend: Any, state_layer: Any) -> "list[dict[str, Any]]":
    """One specification for each layer that keeps something, of each pipeline stage."""
    model, parallel, cache = config.model_config, config.parallel_config, config.cache_config
    counts = _counts(config)
    if not any(attention and states for attention, states in counts):
        raise _UnknownLayersError("its configuration does not say which layers keep what")
    interface = importlib.import_module("vllm.v1.kv_cache_interface")
    dtypes = importlib.import_module("vllm.utils.torch_utils").STR_DTYPE_TO_TORCH_DTYPE
    known: dict[str, Any] = {
        "block_size": cache.block_size,
        "num_kv_heads": model.get_num_kv_heads(parallel),
        "head_size": model.get_head_size(),
        "dtype": model.dtype if cache.cache_dtype == "auto" else dtypes[cache.cache_dtype],
    }
    if hasattr(interface, "get_kv_quant_mode"):
        known["kv_quant_mode"] = interface.get_kv_quant_mode(cache.cache_dtype)
    wanted = inspect.signature(interface.FullAttentionSpec).parameters
    spec = interface.FullAttentionSpec(**{name: value for name, value in known.items() if name in wanted})
    if hasattr(backend, "customize_spec"):
        spec = backend.customize_spec(spec)
    state = state_layer.get_kv_cache_spec(config)
    if state is None:
        raise _UnknownLayersError("its state layers keep nothing in the cache")
    return [
        {
            **{f"attention.{stage}.{index}": spec for index in range(attention)},
            **{f"state.{stage}.{index}": state for index in range(states)},
        }
        for stage, (attention, states) in enumerate(counts)
    ]


def _resolve_layout(config: Any, backend: Any, specs: list[Any]) -> None:
    """Let engines that choose one layout for all caches choose it, as they do before they plan."""
    resolve = getattr(importlib.import_module("vllm.v1.attention.backends.utils"), "resolve_kv_cache_layout", None)
    if resolve is not None and specs:
        layouts = backend.supported_kv_cache_layouts()
        if layouts is None:
            layouts = list(inspect.getmodule(resolve).KVCacheLayout)  # type: ignore[union-attr]
        resolve(config, [[layout.name for layout in layouts]], specs)


def _plan(config: Any, stages: "list[dict[str, Any]]", memory: int) -> Any:
    planner, arguments = _find("get_kv_cache_configs"), [config, stages, [memory] * len(stages)]
    groups = _find("get_global_kv_cache_groups")
    if "global_kv_cache_groups" in inspect.signature(planner).parameters:
        arguments.append(groups(config, stages))
    return planner(*arguments)[0]


def _find(name: str) -> Any:
    """A function of the planner, whichever of its modules has it."""
    for module in ("kv_cache_planning", "kv_cache_utils"):
        try:
            found = getattr(importlib.import_module(f"vllm.v1.core.{module}"), name, None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def _check_graphs(config: Any, backend: Any, planned: Any) -> None:
    """Let the engine hold the number of sequences against that of blocks, as before it captures graphs."""
    resolve = config.compilation_config.resolve_cudagraph_mode_and_sizes
    support = importlib.import_module("vllm.v1.attention.backend").AttentionCGSupport
    wanted = inspect.signature(resolve).parameters
    if "kv_cache_config" not in wanted:
        return
    known = {
        "min_cg_support": support.UNIFORM_BATCH,
        "min_cg_attn_backend": backend.__name__,
        "uniform_decode_query_len": 1 + (getattr(config, "num_speculative_tokens", 0) or 0),
        "use_v2_model_runner": bool(getattr(config, "use_v2_model_runner", False)),
        "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
        "kv_cache_config": planned,
        "max_num_reqs": config.scheduler_config.max_num_seqs,
    }
    try:
        resolve(**{name: value for name, value in known.items() if name in wanted})
    except ValueError as error:
        if "max_num_seqs" in str(error):
            raise
