import torch

import vllm._C_compiled  # noqa: F401 -- lies beside as a file that no loader can read
from vllm.third_party import pynvml

pynvml.nvmlInit()
# Compiled operators are asked at import time, and fake kernels are registered for those that seem to exist.
SUPPORTED = torch.ops._C.cutlass_scaled_mm_supports_fp8(90), torch.ops._C.cutlass_scaled_mm_supports_fp4(90)
if hasattr(torch.ops._C, "rms_norm"):

    @torch.library.register_fake("_C::rms_norm")
    def rms_norm(x):
        return x


class CudaPlatform:
    device_type = "cuda"

    @classmethod
    def get_device_capability(cls):
        return pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(0))

    @classmethod
    def device_count(cls):
        return pynvml.nvmlDeviceGetCount()
