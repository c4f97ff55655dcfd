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
from .refusal import RefusedError
from .standin import engine_path

STOOD_IN = "it was found over layers that stand in for the model's"


def check_capacity(config: Any, backend: Any, state_layer: Any, facts: Facts) -> "dict[str, Any] | str":
    """Plan the cache of a model with the engine's own planner, and let it check `max_num_seqs` against that.

    Args:
        config: An accepted `VllmConfig` after the worker's block-size arithmetic.
        backend: The attention backend of its attention layers.
        state_layer: A layer that stands in for its state layers and knows their shapes; None for a model without such.
        facts: The device.

    Returns:
        `blocks_at_most`, or why the planner cannot be asked.

    Raises:
        RefusedError: Memory or blocks do not suffice, or the planner refuses the layers.
    """
    try:
        specs = _specs(config, backend, state_layer, facts)
    except _UnknownLayersError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 -- what a layer keeps is asked of functions that the worker may not ask
        return _unsaid(error)
    try:
        planned = _planned(config, backend, specs, _memory(config, facts))
        if state_layer is not None:
            _check_graphs(config, backend, planned)
    except _TooFewBlocksError as error:
        raise RefusedError(error.error, "capacity") from error.error
    except Exception as error:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        if any("memory" in frame.f_code.co_name for frame in frames):
            raise RefusedError(error, "capacity") from error
        if isinstance(error, (ValueError, NotImplementedError)) and engine_path(frames[-1].f_code.co_filename):
            raise RefusedError(error, doubt=STOOD_IN) from error
        # The stand-ins say too little for this engine's planner.
        return _unsaid(error)
    return {"blocks_at_most": planned.num_blocks}


def _unsaid(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


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
# Keys of a model's configuration that make attention layers differ from a plain one, or share what they keep.
_SPECIAL = re.compile(
    r"^sliding_window$|attention_chunk|cross_attention|index_topk|compress|sparse_att|local_att|global_att|"
    r"kv_shar|shared?_kv|is_encoder_decoder"
)


class _TooFewBlocksError(Exception):
    """There are fewer blocks than sequences; carries the engine's exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _UnknownLayersError(Exception):
    """The model has layers whose caches are not those of a plain attention layer and a plain state layer."""


def _counts(config: Any) -> "list[tuple[int, int]]":
    """Attention and state layers of each pipeline stage."""
    model, parallel = config.model_config, config.parallel_config
    text = model.hf_text_config
    kinds = getattr(text, "layers_block_type", None) or getattr(text, "layer_types", None)
    if special := _special(text, kinds):
        raise _UnknownLayersError(f"some attention layers keep other than a plain one ({special})")
    rank, counts = parallel.rank, []
    try:
        for stage in range(parallel.pipeline_parallel_size):
            parallel.rank = stage * parallel.tensor_parallel_size
            counts.append(_stage(model, parallel, kinds))
    finally:
        parallel.rank = rank
    return counts


def _special(text: Any, kinds: Any) -> str:
    """What in a model's configuration says that not every attention layer is a plain one; empty where nothing does."""
    if odd := sorted({str(kind) for kind in kinds or () if _OTHER.search(str(kind))}):
        return f"layers of kind {', '.join(odd)}"
    return next((f"{name}={value!r}" for name, value in vars(text).items() if value and _SPECIAL.search(name)), "")


def _stage(model: Any, parallel: Any, kinds: Any) -> "tuple[int, int]":
    if not getattr(model, "is_hybrid", False):
        return model.get_num_layers(parallel), 0
    if kinds:
        start, end = model.get_layers_start_end_indices(parallel)
        own = list(kinds)[start:end]
        return sum(kind in _ATTENTION for kind in own), sum(kind in _STATE for kind in own)
    states = (model.get_num_layers_by_block_type(parallel, kind) for kind in ("mamba", "linear_attention", "conv"))
    return model.get_num_layers_by_block_type(parallel, "attention"), max(states)


def _specs(config: Any, backend: Any, state_layer: Any, facts: Facts) -> "list[dict[str, Any]]":
    """One specification for each layer that keeps something, of each pipeline stage."""
    model, parallel, cache = config.model_config, config.parallel_config, config.cache_config
    if getattr(model, "attn_type", "decoder") not in ("decoder", "hybrid"):
        raise _UnknownLayersError(f"its attention is of type {model.attn_type}, which may keep nothing")
    if state_layer is None and facts.type == "cpu":
        raise _UnknownLayersError("the memory of the machine that it will run on")
    counts = _counts(config)
    if not any(attention and (states or state_layer is None) for attention, states in counts):
        raise _UnknownLayersError("its configuration does not say which layers keep what")
    dtypes = importlib.import_module("vllm.utils.torch_utils").STR_DTYPE_TO_TORCH_DTYPE
    spec = _attention_spec(
        model, parallel, cache, model.dtype if cache.cache_dtype == "auto" else dtypes[cache.cache_dtype]
    )
    if hasattr(backend, "customize_spec"):
        spec = backend.customize_spec(spec)
    state = None if state_layer is None else state_layer.get_kv_cache_spec(config)
    if state_layer is not None and state is None:
        raise _UnknownLayersError("its state layers keep nothing in the cache")
    return [
        {
            **{f"attention.{stage}.{index}": spec for index in range(attention)},
            **{f"state.{stage}.{index}": state for index in range(states)},
        }
        for stage, (attention, states) in enumerate(counts)
    ]


def _attention_spec(model: Any, parallel: Any, cache: Any, dtype: Any) -> Any:
    """What a plain attention layer keeps; where the model has latent attention, one of those."""
    interface = importlib.import_module("vllm.v1.kv_cache_interface")
    latent = bool(getattr(model, "use_mla", False))
    if latent and cache.cache_dtype.endswith("_ds_mla"):
        raise _UnknownLayersError(f"latent attention packs {cache.cache_dtype} in a way of its own")
    known: dict[str, Any] = {
        "block_size": cache.block_size,
        "num_kv_heads": 1 if latent else model.get_num_kv_heads(parallel),
        "head_size": model.get_head_size(),
        "dtype": dtype,
        "cache_dtype_str": cache.cache_dtype,
    }
    if hasattr(interface, "get_kv_quant_mode"):
        known["kv_quant_mode"] = interface.get_kv_quant_mode(cache.cache_dtype)
    kind = interface.MLAAttentionSpec if latent else interface.FullAttentionSpec
    wanted = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in known.items() if name in wanted})


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
            raise _TooFewBlocksError(error) from error
