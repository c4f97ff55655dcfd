"""Stage one, Typed: what the user wrote, checked field by field; unset stays unset.

Rules between fields do not live here: a field error would keep pydantic from running them.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from staticfire.engine.config.errors import Fault
from staticfire.engine.config.model import LARGEST
from staticfire.engine.config.options import KNOWN, VERSIONS

Positive = Annotated[int, Field(gt=0, le=LARGEST)]
FIT: Final = -1
"""As `max_model_len`: the longest that fits the pool."""


def _length(value: int) -> int:
    if value < 1 and value != FIT:
        raise PydanticCustomError("greater_than", "Input should be greater than 0, or -1 for the longest that fits")
    return value


Length = Annotated[int, Field(le=LARGEST), AfterValidator(_length)]
StateDtype = Literal["auto", "float16", "bfloat16", "float32", "float64"]
Quantization = Literal[
    "experts_int8", "int8_per_channel_weight_only", "fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel",
    "mxfp8", "mxfp4", "gpt_oss_mxfp4", "nvfp4_per_token", "auto_awq", "awq", "awq_marlin", "auto_gptq", "gptq",
    "gptq_marlin", "compressed-tensors", "modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed", "quark",
    "moe_wna16", "humming", "torchao", "fbgemm_fp8", "fp_quant", "inc", "deepseek_v4_fp8", "online", "bitsandbytes",
    "gguf",
]  # fmt: skip
KvDtype = Literal[
    "auto", "float16", "bfloat16", "float32", "float64", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla",
    "nvfp4_ds_mla", "nvfp4", "nvfp4_4over6", "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc",
    "turboquant_3bit_nc", "octave_k3v4", "octave_k3v3", "octave_k3v3_compact", "ultraquant_4bit",
    "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head",
]  # fmt: skip
LoadFormat = Literal[
    "auto", "safetensors", "dummy", "pt", "npcache", "fastsafetensors", "instanttensor", "ipc_cache", "bitsandbytes",
    "mistral", "runai_streamer", "runai_streamer_sharded", "sharded_state", "tensorizer", "gguf",
]  # fmt: skip


class Typed(BaseModel):
    """The keywords that the engine implements. None means: not typed, the engine decides."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32", "float64"] | None = None
    max_model_len: Length | None = None
    seed: Annotated[int, Field(ge=0, lt=2**64)] | None = None

    block_size: Positive | None = None
    enable_prefix_caching: bool | None = None
    mamba_cache_mode: Literal["none", "align", "all"] | None = None
    mamba_block_size: Positive | None = None
    mamba_cache_dtype: StateDtype | None = None
    mamba_ssm_cache_dtype: StateDtype | None = None
    kv_cache_dtype: KvDtype | None = None
    num_gpu_blocks_override: Annotated[int, Field(gt=1, le=LARGEST)] | None = None
    kv_cache_memory_bytes: Positive | None = None
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None

    max_num_batched_tokens: Positive | None = None
    max_num_seqs: Positive | None = None
    enable_chunked_prefill: bool | None = None
    long_prefill_token_threshold: Annotated[int, Field(ge=0, le=LARGEST)] | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None

    tensor_parallel_size: Positive | None = None
    pipeline_parallel_size: Positive | None = None
    data_parallel_size: Positive | None = None
    data_parallel_rank: Annotated[int, Field(ge=0, le=LARGEST)] | None = None
    data_parallel_external_lb: bool | None = None
    data_parallel_address: Annotated[str, Field(min_length=1)] | None = None
    data_parallel_rpc_port: Annotated[int, Field(gt=0, le=65535)] | None = None
    enable_multiprocessing: bool | None = None
    enable_expert_parallel: bool | None = None

    quantization: Quantization | None = None
    load_format: LoadFormat | None = None
    kernel_backend: Literal["torch", "triton"] | None = None


IMPLEMENTED: Final = frozenset(Typed.model_fields)

BESIDE_ENGINE_ARGS: Final = frozenset({"enable_multiprocessing", "kernel_backend"})
"""Keywords that are none of vLLM's `EngineArgs`: what it takes elsewhere (`LLMEngine.from_engine_args`), and ours."""

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    name: values
    for name, info in Typed.model_fields.items()
    for arg in get_args(info.annotation)
    if (values := tuple(v for v in get_args(arg) if isinstance(v, str)))
}
"""Keyword -> the names it allows, where it allows names."""


def read_typed(typed: Mapping[str, Any]) -> tuple[Typed, dict[str, Any], list[Fault]]:
    """Check keywords one by one.

    Args:
        typed: What the user wrote, by vLLM's keyword names. A value of None counts as not written.

    Returns:
        The implemented keywords; the other known ones (judged by the rules); every field error.
    """
    implemented: dict[str, Any] = {}
    others: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, value in typed.items():
        if value is None:
            if name not in IMPLEMENTED and name not in KNOWN:
                faults.append(_unknown(name, value))
        elif name in IMPLEMENTED:
            implemented[name] = value
        elif name in KNOWN:
            others[name] = value
        else:
            faults.append(_unknown(name, value))
    try:
        return Typed.model_validate(implemented), others, faults
    except ValidationError as error:
        faults.extend(_fault(entry) for entry in error.errors(include_url=False))
    sound = {name: value for name, value in implemented.items() if name not in {f.field for f in faults}}
    return Typed.model_validate(sound), others, faults


def _unknown(name: object, value: Any) -> Fault:
    near = get_close_matches(str(name), [*IMPLEMENTED, *KNOWN], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"no keyword of vLLM {VERSIONS[0]} to {VERSIONS[-1]} is near it"
    return Fault("unknown-option", str(name), f"{name!r} is no configuration keyword; {hint}", value=value)


def _fault(entry: Any) -> Fault:
    name = str(entry["loc"][0])
    value = entry["input"]
    if name in CHOICES:
        near = get_close_matches(str(value), CHOICES[name], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"{name}={value!r} is not one of {', '.join(CHOICES[name])}{hint}"
    else:
        text = str(entry["msg"]).removeprefix("Input should be ")
        message = f"{name}={value!r} should be {text}"
    return Fault(str(entry["type"]), name, message, value=value)
