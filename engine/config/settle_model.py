"""Settle the sections `model`, `parallel`, `quantization`, `load` and `kernel`."""

from collections import Counter
from typing import Final

from staticfire.engine.config.device import Device
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.resolution import Value
from staticfire.engine.config.typed import FIT

LENGTH: Final = "model.max_model_len"
ONE: Final = Value(1, "default")
DATA_PARALLEL, PROCESSES, RANK, EXTERNAL = (
    "parallel.data_parallel_size",
    "parallel.enable_multiprocessing",
    "parallel.data_parallel_rank",
    "parallel.data_parallel_external_lb",
)
ALIASES: Final = {"half": "float16", "float": "float32"}
BFLOAT16_CAPABILITY: Final = (8, 0)


def computes_bfloat16(device: Device) -> bool:
    """Whether the device has bfloat16: every one but CUDA devices below compute capability 8.0."""
    return device.type != "cuda" or device.capability is None or device.capability >= BFLOAT16_CAPABILITY


def settle_model(draft: Draft) -> None:
    """Facts of the checkpoint, then dtype, length and seed."""
    model, values = draft.model, draft.values
    values["model.architecture"] = Value(model.architecture, "derived", "config.json says so")
    values["model.is_hybrid"] = Value(model.is_hybrid, "derived", layer_sentence(model))
    _settle_dtype(draft)
    _settle_length(draft)
    draft.seed = draft.plain("model.seed", Value(0, "default"))


def _settle_length(draft: Draft) -> None:
    """Settle the longest request; where it is to be fitted, this is the bound, and the worker does the rest."""
    typed, context = draft.typed.max_model_len, draft.model.max_position_embeddings
    draft.fit_max_model_len = typed == FIT
    if typed is None:
        draft.max_model_len = draft.derive(LENGTH, context, "config.json declares this context")
    elif draft.fit_max_model_len:
        because = "-1 asks for the longest that fits the pool; config.json declares this context, the worker fits it"
        draft.max_model_len = draft.derive(LENGTH, context, because)
    else:
        draft.max_model_len = draft.keep(LENGTH, typed)
    if draft.fit_max_model_len:
        draft.derive("model.fit_max_model_len", True, "max_model_len=-1 is typed")
    else:
        draft.values["model.fit_max_model_len"] = Value(False, "default")


def layer_sentence(model: ModelInfo) -> str:
    """`config.json has 4 attention and 28 mamba1 layers`."""
    counts = Counter(layer.mixer for layer in model.layers if layer.mixer != "none")
    kinds = " and ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"config.json has {kinds} layers"


def _settle_dtype(draft: Draft) -> None:
    typed, declared, device = draft.typed.dtype, draft.model.dtype, draft.device
    if typed is not None and typed != "auto":
        draft.dtype = draft.keep("model.dtype", ALIASES.get(typed, typed))
    elif declared == "bfloat16" and not computes_bfloat16(device):
        draft.dtype = draft.derive(
            "model.dtype",
            "float16",
            f"config.json declares bfloat16, which {device.name} does not compute",
        )
    elif draft.release.narrows_float32 and declared in {"float32", "float64"}:
        because = f"{draft.release.name} computes a checkpoint that declares {declared}, or nothing, in this dtype"
        dtype = "bfloat16" if computes_bfloat16(device) else "float16"
        draft.dtype = draft.derive("model.dtype", dtype, because)
    else:
        draft.dtype = draft.derive("model.dtype", declared, "config.json declares it")


def settle_parallel(draft: Draft) -> None:
    """Sizes are what was typed, else 1; several engines need processes of their own."""
    draft.tensor_parallel_size = draft.plain("parallel.tensor_parallel_size", ONE)
    draft.pipeline_parallel_size = draft.plain("parallel.pipeline_parallel_size", ONE)
    draft.data_parallel_size = draft.plain("parallel.data_parallel_size", ONE)
    draft.enable_expert_parallel = draft.plain("parallel.enable_expert_parallel", Value(False, "default"))
    if draft.typed.enable_multiprocessing is None and draft.data_parallel_size > 1:
        because = "several engines need a process each"
        draft.enable_multiprocessing = draft.derive(PROCESSES, True, because, DATA_PARALLEL)
    else:
        draft.enable_multiprocessing = draft.plain(PROCESSES, Value(False, "default"))
    draft.data_parallel_rank = draft.plain(RANK, Value(None, "default"))
    open_ = draft.typed.data_parallel_external_lb is None or not draft.release.rank_needs_external_balancing
    if open_ and draft.data_parallel_rank is not None:
        because = "this front end serves one rank, so somebody outside spreads the requests"
        draft.data_parallel_external_lb = draft.derive(EXTERNAL, True, because, RANK)
    else:
        draft.data_parallel_external_lb = draft.plain(EXTERNAL, Value(False, "default"))
    draft.data_parallel_address = draft.plain("parallel.data_parallel_address", Value("127.0.0.1", "default"))
    draft.data_parallel_rpc_port = draft.plain("parallel.data_parallel_rpc_port", Value(29550, "default"))


def settle_weights(draft: Draft) -> None:
    """Quantization and load format of the weights, and what computes with them."""
    draft.quantization = draft.plain("quantization.method", Value(None, "default"))
    draft.kernel_backend = draft.plain("kernel.backend", Value("torch", "default"))
    if draft.typed.load_format == "auto" or draft.typed.load_format is None:
        draft.load_format = draft.derive("load.load_format", "safetensors", "it is the format the engine reads")
    else:
        draft.load_format = draft.keep("load.load_format", draft.typed.load_format)
