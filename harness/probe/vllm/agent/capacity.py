"""How many cache blocks there can be at most: the device's whole share of memory, as if the weights weighed nothing.

What does not even fit then is refused on every machine with that device; whether the rest fits depends on weights and
activations, which only a real start can measure.
"""

import importlib
import inspect
import traceback
from typing import Any

from .device import Facts


def check_capacity(config: Any, backend: Any, state_layer: Any, facts: Facts) -> dict[str, Any]:
    """Plan the cache of a hybrid model with the engine's own planner, and let it check `max_num_seqs` against that.

    Args:
        config: An accepted `VllmConfig` after the worker's block-size arithmetic.
        backend: The attention backend of its attention layers.
        state_layer: A layer that stands in for its state layers and knows their shapes.
        facts: The device.

    Returns:
        `capacity.blocks_at_most`, or nothing where the planner cannot be asked.

    Raises:
        Exception: What the engine raises because memory or blocks do not suffice.
    """
    try:
        specs = _specs(config, backend, state_layer)
        planned = _planned(config, backend, specs, _memory(config, facts)) if specs else None
    except Exception as error:
        if any("memory" in frame.name for frame in traceback.extract_tb(error.__traceback__)):
            raise
        return {}  # the stand-ins say too little for this engine's planner
    if planned is None:
        return {}
    _check_graphs(config, backend, planned)
    return {"capacity.blocks_at_most": planned.num_blocks}


# Plans by what they depend on: one takes longer than all the rest of a question, and suites vary other things.
_PLANS: dict[str, Any] = {}
_MOST_PLANS = 512
_WIDTHS = (
    "tensor_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "prefill_context_parallel_size",
)


def _planned(config: Any, backend: Any, specs: dict[str, Any], memory: int) -> Any:
    scheduler = config.scheduler_config
    key = repr(
        (
            [(len(specs), spec) for spec in {id(spec): spec for spec in specs.values()}.values()],
            sum(name.startswith("attention") for name in specs),
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
        _resolve_layout(config, backend, list(specs.values()))
        if len(_PLANS) >= _MOST_PLANS:
            _PLANS.clear()
        _PLANS[key] = _plan(config, specs, memory)
    return _PLANS[key]


def _memory(config: Any, facts: Facts) -> int:
    cache = config.cache_config
    given = getattr(cache, "kv_cache_memory_bytes", None)
    return int(given or facts.memory * cache.gpu_memory_utilization)


def _specs(config: Any, backend: Any, state_layer: Any) -> dict[str, Any]:
    """One specification for each layer that keeps something; empty where the model has not both kinds."""
    model, parallel, cache = config.model_config, config.parallel_config, config.cache_config
    windowed = getattr(model.hf_text_config, "sliding_window", None)
    if getattr(model, "use_mla", False) or windowed or parallel.pipeline_parallel_size > 1:
        return {}  # those layers need less than a plain one, and a rank has not all of them
    attention = model.get_num_layers_by_block_type(parallel, "attention")
    states = max(model.get_num_layers_by_block_type(parallel, kind) for kind in ("mamba", "linear_attention", "conv"))
    if not attention or not states:
        return {}
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
    specs = {f"attention.{index}": spec for index in range(attention)}
    state = state_layer.get_kv_cache_spec(config)
    return {**specs, **{f"state.{index}": state for index in range(states)}} if state is not None else {}


def _resolve_layout(config: Any, backend: Any, specs: list[Any]) -> None:
    """Let engines that choose one layout for all caches choose it, as they do before they plan."""
    resolve = getattr(importlib.import_module("vllm.v1.attention.backends.utils"), "resolve_kv_cache_layout", None)
    if resolve is not None and specs:
        layouts = backend.supported_kv_cache_layouts()
        if layouts is None:
            layouts = list(inspect.getmodule(resolve).KVCacheLayout)  # type: ignore[union-attr]
        resolve(config, [[layout.name for layout in layouts]], specs)


def _plan(config: Any, specs: dict[str, Any], memory: int) -> Any:
    planner, arguments = _find("get_kv_cache_configs"), [config, [specs], [memory]]
    groups = _find("get_global_kv_cache_groups")
    if "global_kv_cache_groups" in inspect.signature(planner).parameters:
        arguments.append(groups(config, [specs]))
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
