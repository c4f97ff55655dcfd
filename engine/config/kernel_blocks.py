"""Which blocks the kernels of a release ask for on a device: what the alignment of pages starts from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from staticfire.engine.config.device import Device
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.release import EngineRelease

SMALLEST: Final = 16
"""Tokens in the smallest block of every attention kernel on a GPU but the ones below."""
WIDE_HEAD: Final = 256
WIDE_HEAD_FAMILIES: Final = frozenset({10, 11})
WIDE_HEAD_DTYPES: Final = frozenset({"float16", "bfloat16"})
HOPPER: Final = (9, 0)
EXPORTING_FAMILIES: Final = frozenset({10, 12})
"""Major compute capabilities on which FlashInfer prefills gated-delta layers whose keys are 128 wide."""
EXPORTING_KEY_WIDTH: Final = 128


@dataclass(frozen=True, slots=True)
class KernelBlocks:
    """What kernels ask of a block, in tokens.

    Attributes:
        smallest: The smallest block of the attention kernel; a block is one of its multiples.
        preferred: A block where no size is typed, before it is made to hold a state.
        export_step: Multiples that the kernel of the recurrent layers asks for; 1 where it asks for none.
        because: Why `smallest` and `export_step` are not the usual ones; empty where they are.
    """

    smallest: int = SMALLEST
    preferred: int = SMALLEST
    export_step: int = 1
    because: tuple[str, ...] = ()


USUAL: Final = KernelBlocks()
CHOOSES_KERNELS: Final = frozenset(
    {"attention_backend", "attention_config", "gdn_prefill_backend", "additional_config"},
)
"""Keywords that decide here which kernel's blocks count, where vLLM is imitated."""


def kernel_blocks(
    release: EngineRelease,
    device: Device,
    model: ModelInfo,
    *,
    dtype: str,
    kv_cache_dtype: str,
    block_size: int | None,
    mode: str,
    others: Mapping[str, Any],
) -> KernelBlocks:
    """Look up what the kernels ask for.

    Args:
        release: The engine.
        device: The device.
        model: The model.
        dtype: What the model is computed in.
        kv_cache_dtype: What keys and values are stored in.
        block_size: As typed.
        mode: Resolved cache mode.
        others: Typed keywords that choose among kernels.

    Returns:
        The blocks of the attention kernel, and the step of the recurrent layers' kernel.
    """
    if not model.attention_layers:
        return USUAL
    if device.type == "cpu":
        smallest, preferred = release.cpu_blocks
        because = () if smallest == SMALLEST else (f"a CPU's attention kernel takes blocks of {smallest} tokens",)
        return KernelBlocks(smallest, preferred, 1, because)
    wide = _wide_head_block(release, device, model, dtype, kv_cache_dtype, block_size, others)
    step = _export_step(release, device, model, others) if mode == "align" else 1
    because = ()
    if wide is not None:
        because = (f"FLASH_ATTN has pages of {wide} tokens for heads of {WIDE_HEAD} on {device.name}",)
    if step > 1:
        because = (*because, f"FlashInfer's gated-delta kernel exports states every {step} tokens on {device.name}")
    smallest = wide or SMALLEST
    return KernelBlocks(smallest, smallest, step, because)


def _wide_head_block(
    release: EngineRelease,
    device: Device,
    model: ModelInfo,
    dtype: str,
    kv_cache_dtype: str,
    block_size: int | None,
    others: Mapping[str, Any],
) -> int | None:
    """The page of FLASH_ATTN's own kernel for heads of 256, where that backend is chosen.

    It is passed over where keys and values are quantized, and where a typed block is no multiple of its page.
    """
    page = release.wide_head_block
    if page is None or device.type != "cuda" or device.capability is None or model.head_dim != WIDE_HEAD:
        return None
    if device.capability[0] not in WIDE_HEAD_FAMILIES or dtype not in WIDE_HEAD_DTYPES or kv_cache_dtype != dtype:
        return None
    if block_size is not None and block_size % page:
        return None
    return page if attention_backend(others) in {None, "FLASH_ATTN"} else None


def attention_backend(others: Mapping[str, Any]) -> str | None:
    """The attention backend that is typed, None where the engine chooses."""
    config = others.get("attention_config")
    typed = others.get("attention_backend") or (config.get("backend") if isinstance(config, Mapping) else None)
    name = str(typed).rpartition(".")[2].upper() if typed else None
    return None if name == "AUTO" else name


def _export_step(release: EngineRelease, device: Device, model: ModelInfo, others: Mapping[str, Any]) -> int:
    """Tokens between two states that the kernel of a gated-delta prefill can export."""
    step = release.state_export_step
    if step is None or model.recurrent_kind != "gated_delta_net" or device.type != "cuda" or device.capability is None:
        return 1
    if device.capability == HOPPER:
        flashinfer = True
    else:
        flashinfer = device.capability[0] in EXPORTING_FAMILIES and _key_width(model) == EXPORTING_KEY_WIDTH
    return step if flashinfer and _prefill_backend(others) in {"auto", "flashinfer"} else 1


def _prefill_backend(others: Mapping[str, Any]) -> str:
    extra = others.get("additional_config")
    typed = others.get("gdn_prefill_backend") or (
        extra.get("gdn_prefill_backend") if isinstance(extra, Mapping) else None
    )
    return str(typed or "auto").strip().lower()


def _key_width(model: ModelInfo) -> int:
    """Elements of one key of a gated-delta layer: the last dimension of its state."""
    shapes = model.state_shapes(1, 0) if model.state_shapes else ()
    return next((state.shape[-1] for state in shapes if state.role == "ssm"), 0)
