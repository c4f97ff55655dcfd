"""The ready response: every value that is settled at run time, each with the way it travels.

The declarations of `ReadyResponse` are the one table: `make` reads from it where a value comes from, `settle` how the
answers of several engines become one value. A value that is not declared here does not reach the front end.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final, TypeAlias, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from staticfire.engine.config.engine_config import Dtype, MambaCacheMode
from staticfire.engine.errors import WireError


class Merge(Enum):
    """How the values of several engines become the front end's one.

    None never erases a value: an engine that answers None has nothing to say.
    """

    MINIMUM = "the smallest of what was resolved and what any engine answers"
    SUM_OVER_ENGINES = "the engines' values added up"
    MUST_AGREE = "one value; two different ones are an error that names the engines"
    AS_RESOLVED = "what was resolved; an engine that answers something else is an error"
    PER_ENGINE = "each engine's own; the front end keeps what it had"


@dataclass(frozen=True, slots=True)
class Travels:
    """How one field travels.

    Attributes:
        source: `section.field` of the engine's configuration that it is read from; None where the engine core itself
            says it.
        merge: What the front end makes of several engines.
        also: Further `section.field`s that hold the same value.
    """

    source: str | None
    merge: Merge
    also: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """Every `section.field` that the answer settles."""
        return self.also if self.source is None else (self.source, *self.also)


Count: TypeAlias = Annotated[int, Meta(ge=0)]
MINIMUM, SUM_OVER_ENGINES, MUST_AGREE, AS_RESOLVED, PER_ENGINE = Merge


class ReadyResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine answers. An older engine leaves out what it does not know; that is not the same as None.

    Attributes:
        engine_index: Which engine this is: the key of its answers.
        version: Version of the engine's software.
        dp_stats_address: Where the coordinator of data-parallel engines publishes their load.
    """

    engine_index: Annotated[int, Meta(ge=0)]
    version: Annotated[str | UnsetType, Travels(None, PER_ENGINE)] = UNSET
    dp_stats_address: Annotated[str | UnsetType | None, Travels(None, MUST_AGREE)] = UNSET

    max_model_len: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType,
        Travels("runtime.max_model_len", MINIMUM, also=("model.max_model_len", "scheduler.max_model_len")),
    ] = UNSET
    num_gpu_blocks: Annotated[Count | UnsetType, Travels("runtime.num_gpu_blocks", SUM_OVER_ENGINES)] = UNSET
    kv_cache_size_tokens: Annotated[Count | UnsetType, Travels("runtime.kv_cache_size_tokens", SUM_OVER_ENGINES)] = (
        UNSET
    )
    kv_cache_max_concurrency: Annotated[
        Annotated[float, Meta(ge=0)] | UnsetType, Travels("runtime.kv_cache_max_concurrency", SUM_OVER_ENGINES)
    ] = UNSET
    block_size: Annotated[Count | UnsetType, Travels("runtime.block_size", MUST_AGREE)] = UNSET
    mamba_block_size: Annotated[Count | UnsetType | None, Travels("runtime.mamba_block_size", MUST_AGREE)] = UNSET
    kernel_block_size: Annotated[Count | UnsetType, Travels("runtime.kernel_block_size", MUST_AGREE)] = UNSET
    page_size_bytes: Annotated[Count | UnsetType, Travels("runtime.page_size_bytes", MUST_AGREE)] = UNSET
    mamba_page_size_padded: Annotated[
        Count | UnsetType | None, Travels("runtime.mamba_page_size_padded", MUST_AGREE)
    ] = UNSET
    attention_bytes_per_token: Annotated[
        Count | UnsetType, Travels("runtime.attention_bytes_per_token", MUST_AGREE)
    ] = UNSET
    state_bytes: Annotated[Count | UnsetType, Travels("runtime.state_bytes", MUST_AGREE)] = UNSET
    num_groups: Annotated[Count | UnsetType, Travels("runtime.num_groups", MUST_AGREE)] = UNSET

    dtype: Annotated[Dtype | UnsetType, Travels("model.dtype", AS_RESOLVED)] = UNSET
    cache_dtype: Annotated[str | UnsetType, Travels("cache.cache_dtype", AS_RESOLVED)] = UNSET
    mamba_cache_dtype: Annotated[str | UnsetType, Travels("cache.mamba_cache_dtype", AS_RESOLVED)] = UNSET
    mamba_ssm_cache_dtype: Annotated[str | UnsetType, Travels("cache.mamba_ssm_cache_dtype", AS_RESOLVED)] = UNSET
    mamba_cache_mode: Annotated[MambaCacheMode | UnsetType, Travels("cache.mamba_cache_mode", AS_RESOLVED)] = UNSET
    enable_prefix_caching: Annotated[bool | UnsetType, Travels("cache.enable_prefix_caching", AS_RESOLVED)] = UNSET
    max_num_seqs: Annotated[Count | UnsetType, Travels("scheduler.max_num_seqs", AS_RESOLVED)] = UNSET
    max_num_batched_tokens: Annotated[Count | UnsetType, Travels("scheduler.max_num_batched_tokens", AS_RESOLVED)] = (
        UNSET
    )
    tensor_parallel_size: Annotated[Count | UnsetType, Travels("parallel.tensor_parallel_size", AS_RESOLVED)] = UNSET
    pipeline_parallel_size: Annotated[Count | UnsetType, Travels("parallel.pipeline_parallel_size", AS_RESOLVED)] = (
        UNSET
    )
    data_parallel_size: Annotated[Count | UnsetType, Travels("parallel.data_parallel_size", AS_RESOLVED)] = UNSET
    data_parallel_rank: Annotated[Count | UnsetType | None, Travels("parallel.data_parallel_rank", PER_ENGINE)] = UNSET


STAYS: Final[dict[str, str]] = {
    "model.model": "the user's words",
    "model.info": "read from the config.json of the checkpoint",
    "model.fit_max_model_len": "what the front end asked for; what came of it is runtime.max_model_len",
    "model.seed": "only the front end derives seeds from it",
    "cache.block_size": "what the front end resolved; the worker's is runtime.block_size",
    "cache.mamba_block_size": "what the front end resolved; the worker's is runtime.mamba_block_size",
    "cache.num_gpu_blocks_override": "what the front end resolved; the worker's is runtime.num_gpu_blocks",
    "cache.kv_cache_memory_bytes": "what the front end resolved; the worker's is runtime.num_gpu_blocks",
    "scheduler.enable_chunked_prefill": "nothing at run time changes it",
    "scheduler.long_prefill_token_threshold": "nothing at run time changes it",
    "scheduler.policy": "nothing at run time changes it",
    "parallel.enable_multiprocessing": "the front end starts the processes",
    "parallel.data_parallel_external_lb": "the front end starts the processes",
    "parallel.data_parallel_address": "the front end starts the processes",
    "parallel.data_parallel_rpc_port": "the front end starts the processes",
    "quantization.method": "nothing at run time changes it",
    "load.load_format": "nothing at run time changes it",
    "kernel.backend": "nothing at run time changes it",
    "device.name": "the device was chosen before",
    "device.type": "the device was chosen before",
    "device.memory_bytes": "the device was chosen before",
    "device.capability": "the device was chosen before",
    "device.count": "the device was chosen before",
}
"""Configuration fields that no worker settles, and why: these alone may stay out of the ready response."""


def _table() -> dict[str, Travels]:
    hints = get_type_hints(ReadyResponse, include_extras=True)
    found = {name: [part for part in get_args(hint)[1:] if isinstance(part, Travels)] for name, hint in hints.items()}
    return {name: parts[0] for name, parts in found.items() if parts}


TABLE: Final[dict[str, Travels]] = _table()
"""Field of `ReadyResponse` -> how it travels."""

MAX_BYTES: Final = 64 * 1024
"""No ready response is larger; one that is gets refused unread."""

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(ReadyResponse)


def encode(response: ReadyResponse) -> bytes:
    """Encode for the wire: a map by field names, so that older and newer peers read each other."""
    return _ENCODER.encode(response)


def decode(data: bytes) -> ReadyResponse:
    """Decode what a peer of any version sent; fields that only a newer one knows are passed over.

    Raises:
        WireError: The message is damaged, too large, or holds values of the wrong kind.
    """
    if len(data) > MAX_BYTES:
        raise WireError(f"a ready response of {len(data)} bytes is refused: the limit is {MAX_BYTES}")
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"a ready response of {len(data)} bytes cannot be read: {error}") from error
