"""Which environment variables of a site vLLM is asked with.

What a file that is only read sets for the engine must not make the engine write to a folder, reach a machine, load a
plugin or see a secret. So a variable is passed only if it stands in `PASSED`, and it stands there only if vLLM reads it
while it makes and checks a configuration, and only as a switch, a number or a name of its own.

Derived from `envs.py` of 0.27.1, 0.28.0 and 0.33.0, and from what `config/`, `engine/`, `platforms/`, the attention
backends and the layers of recurrent models read there; `tests/integration_vllm/test_passed_variables.py` holds the
lists to the installed releases.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

PASSED: Final[Mapping[str, str]] = {
    "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "decides whether one pool serves layers of several kinds",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "turns the refusal of a context longer than the model's into a warning",
    "VLLM_BATCH_INVARIANT": "refuses attention backends and changes parallel and compilation settings",
    "VLLM_CPU_KVCACHE_SPACE": "is the size of the pool on a CPU",
    "VLLM_DP_RANK": "is the data-parallel rank where none is typed",
    "VLLM_DP_RANK_LOCAL": "is the local data-parallel rank where none is typed",
    "VLLM_DP_SIZE": "is the data-parallel size where none is typed",
    "VLLM_ENABLE_FLA_PACKED_RECURRENT_DECODE": "chooses the kernel of gated-delta layers",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "decides whether the engine core has a process, which data parallelism needs",
    "VLLM_GDN_DECODE_KERNEL": "chooses the kernel of gated-delta layers, and is refused where that cannot run",
    "VLLM_KV_CACHE_LAYOUT": "is the layout of the pages, which backends and connectors accept or refuse",
    "VLLM_LORA_ENABLE_DUAL_STREAM": "is refused beside fully sharded adapters",
    "VLLM_MLA_DISABLE": "turns latent attention off, which changes backends and pages",
    "VLLM_MM_HASHER_ALGORITHM": "is the default of a field of the multimodal configuration",
    "VLLM_PP_LAYER_PARTITION": "spreads layers over pipeline ranks; refused if it does not fit the model",
    "VLLM_PREFIX_CACHE_RETENTION_INTERVAL": "is checked against the blocks of the pool",
    "VLLM_RAY_DP_PACK_STRATEGY": "decides which data-parallel layouts are refused",
    "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT": "is the layout of the pages on ROCm",
    "VLLM_ROCM_USE_AITER": "chooses attention backends and kernels on ROCm",
    "VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS": "changes the layers of mixtures of experts on ROCm",
    "VLLM_ROCM_USE_AITER_LINEAR": "chooses kernels that a quantization needs on ROCm",
    "VLLM_ROCM_USE_AITER_MHA": "chooses the attention backend on ROCm",
    "VLLM_ROCM_USE_AITER_MLA": "chooses the latent attention backend on ROCm",
    "VLLM_ROCM_USE_AITER_RMSNORM": "decides which fused operations are turned on on ROCm",
    "VLLM_ROCM_USE_AITER_TRITON_SPARSE_MLA": "chooses the sparse attention backend on ROCm",
    "VLLM_ROCM_USE_AITER_UNIFIED_ATTENTION": "chooses the attention backend on ROCm",
    "VLLM_SSM_CONV_STATE_LAYOUT": "is the layout of convolution states, which connectors accept or refuse",
    "VLLM_TRITON_USE_TD": "decides how the Triton attention backend reads pages",
    "VLLM_USE_BREAKABLE_CUDAGRAPH": "changes the compilation mode",
    "VLLM_USE_BYTECODE_HOOK": "decides which compilation modes are refused",
    "VLLM_USE_DEEP_GEMM": "decides which fusions are refused",
    "VLLM_USE_DEEP_GEMM_E8M0": "is checked against the quantization of the checkpoint",
    "VLLM_USE_RUST_FRONTEND": "decides which multimodal settings are refused",
    "VLLM_USE_SIMPLE_KV_OFFLOAD": "chooses the connector that offloads pages",
    "VLLM_USE_TRITON_AWQ": "decides which quantizations are refused on ROCm",
    "VLLM_USE_V2_MODEL_RUNNER": "chooses the model runner, which supports other models and features",
    "VLLM_VIDEO_LOADER_BACKEND": "is checked against the installed backends",
    "VLLM_WORKER_MULTIPROC_METHOD": "decides whether some settings are refused for a forked worker",
    "INKLING_MULTIMEM_AR": "is refused beside adapters of one model family",
    "PYTORCH_CUDA_ALLOC_CONF": "is refused beside a connector if segments expand",
    "TORCH_COMPILE_DISABLE": "turns compilation off",
}
"""Variable -> what it changes in a verdict or in what is resolved."""

OWN: Final[Mapping[str, str]] = {
    "CUDA_VISIBLE_DEVICES": "the presented device decides",
    "HF_HUB_OFFLINE": "no probe reaches the hub",
    "HIP_VISIBLE_DEVICES": "the presented device decides",
    "ROCR_VISIBLE_DEVICES": "the presented device decides",
    "TRANSFORMERS_OFFLINE": "no probe reaches the hub",
    "VLLM_CPU_CI_ENV": "the presented device decides",
    "VLLM_CONFIGURE_LOGGING": "the probe reads what is logged",
    "VLLM_DO_NOT_TRACK": "no probe is reported to anybody",
    "VLLM_LOGGING_LEVEL": "the probe reads what is logged",
    "VLLM_NO_USAGE_STATS": "no probe is reported to anybody",
    "VLLM_TARGET_DEVICE": "the presented device decides",
    "VLLM_TPU_USING_PATHWAYS": "the presented device decides",
    "VLLM_XLA_USE_SPMD": "the presented device decides",
}
"""Variable -> why the probe's own value stands."""

CODE: Final = frozenset({
    "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VLLM_CUDART_SO_PATH", "VLLM_MEDIA_CONNECTOR", "VLLM_NCCL_SO_PATH",
    "VLLM_PLUGINS", "VLLM_RUST_FRONTEND_PATH", "VLLM_USE_FASTOKENS", "VLLM_USE_HW_AGNOSTIC", "VLLM_USE_MODELSCOPE",
    "VLLM_USE_OINK_OPS",
})  # fmt: skip
"""Variables that name or choose code to load."""

NO_VERDICT: Final = "it decides no verdict"

_FOLDER: Final = re.compile(
    r"_(?:DIR|ROOT|PATH|FOLDER|FILE|HOME|CACHE|CACHE_ROOT|CERT)$|^HF_HOME$|^HOME$|^TMPDIR$|^XDG_|^VLLM_DEBUG_DUMP"
)
_SECRET: Final = re.compile(r"(?:^|_)(?:API_KEY|KEY|KEY_ID|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)")
_ADDRESS: Final = re.compile(r"_(?:HOST|IP|IPS|PORT|URL|URI|SERVER|ENDPOINT|ADDR|ADDRESS|HOSTNAME|PROXY)$|^VLLM_RPC_")


VALIDATES: Final = "fail_on_environ_validation"
"""Keyword with which vLLM refuses a `VLLM_` variable that it does not know, whatever its value."""


def validated(keywords: Mapping[str, Any], words: Sequence[str] | None) -> bool:
    """Whether vLLM may be asked to refuse variables that it does not know.

    Args:
        keywords: As a user types them.
        words: The command line in their place; None where there is none.
    """
    if words is None:
        return any(name.rpartition(".")[2] == VALIDATES and value is not False for name, value in keywords.items())
    flag = f"--{VALIDATES}"  # a parser takes the beginning of a flag for the whole
    typed = (word.partition("=")[0].replace("-", "_").replace("__", "--", 1) for word in words)
    return any(len(word) > len("--") and flag.startswith(word) for word in typed)


def only_named(variables: Mapping[str, str]) -> list[str]:
    """Variables whose names the engine is told, and not their values: those of its own that are withheld."""
    return sorted(name for name in variables if name.startswith("VLLM_") and name not in {*PASSED, *OWN})


def passed(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that the engine is asked with."""
    return {name: value for name, value in variables.items() if name in PASSED}


def why_withheld(name: str) -> str:
    """Why a variable is not passed; empty where it is."""
    if name in PASSED:
        return ""
    if name in OWN:
        return OWN[name]
    if name in CODE:
        return "it chooses code to load"
    if _SECRET.search(name):
        return "it is a secret"
    if _FOLDER.search(name):
        return "it names a folder or a file"
    if _ADDRESS.search(name):
        return "it names a machine or a port"
    return NO_VERDICT if name.startswith("VLLM_") else "it is not the engine's"
