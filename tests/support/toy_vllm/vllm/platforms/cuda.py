import torch

import vllm._C_compiled  # noqa: F401 -- lies beside as a file that no loader can read
from vllm.config import get_current_vllm_config
from vllm.third_party import pynvml
from vllm.v1.attention.backends.registry import AttentionBackendEnum

pynvml.nvmlInit()
# Compiled operators are asked at import time, and fake kernels are registered for those that seem to exist.
SUPPORTED = torch.ops._C.cutlass_scaled_mm_supports_fp8(90), torch.ops._C.cutlass_scaled_mm_supports_fp4(90)
if hasattr(torch.ops._C, "rms_norm"):

    @torch.library.register_fake("_C::rms_norm")
    def rms_norm(x):
        return x


class CudaPlatform:
    device_type = "cuda"
    device_name = "cuda"

    @classmethod
    def get_device_capability(cls):
        return pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(0))

    @classmethod
    def device_count(cls):
        return pynvml.nvmlDeviceGetCount()

    @classmethod
    def get_attn_backend_cls(cls, head_size, dtype, block_size):
        """As the real one: in order of priority, with the reasons of all where none is valid."""
        reasons = {}
        for name in get_current_vllm_config().model_config.hf_text_config.backends:
            backend = AttentionBackendEnum[name]
            try:
                reasons[name] = backend.get_class().validate_configuration(head_size, dtype, block_size)
            except (ImportError, OSError) as error:
                reasons[name] = [f"{type(error).__name__}: {error}"]
            if not reasons[name]:
                return backend.value
        told = "{" + ", ".join(f"{name}: [{', '.join(found)}]" for name, found in reasons.items()) + "}"
        raise ValueError(f"No valid attention backend found for {cls.device_name}. Reasons: {told}.")

    @classmethod
    def update_block_size_for_backend(cls, config):
        for layer in config.compilation_config.static_forward_context.values():
            layer.get_attn_backend()
