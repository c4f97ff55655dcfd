"""What a process must be told about kernels before it imports triton, which reads it then and never again.

Imports neither torch nor triton.
"""

from staticfire.engine.config.engine_config import KernelBackend
from staticfire.kernels.targets import FP_FUSION


def kernel_environment(backend: KernelBackend) -> dict[str, str]:
    """Variables for a process whose engine computes with `backend` on the CPU.

    Args:
        backend: Its `kernel_backend`. Interpreted and compiled kernels never share a process.

    Returns:
        Name -> value; nothing where no kernel of Triton runs.
    """
    if backend == "torch":
        return {}
    return {"TRITON_INTERPRET": "1", "TRITON_DEFAULT_FP_FUSION": FP_FUSION}
