"""Whether the ops that a configuration asks for can run in this process."""

from importlib.util import find_spec

import torch

from staticfire.engine.config.engine_config import KernelBackend
from staticfire.engine.errors import EngineError


def require_backend(backend: KernelBackend) -> None:
    """Refuse a backend whose first op would fail.

    Raises:
        EngineError: Triton is not installed, or was imported for a GPU, and the engine computes on the CPU.
    """
    if backend != "triton":
        return
    if find_spec("triton") is None:
        raise EngineError("kernel_backend='triton': triton is not installed here (it is made for Linux); leave it out")
    from staticfire.kernels.interpreter import NoDeviceError, require_device  # noqa: PLC0415 - imports triton

    try:
        require_device(torch.empty(0))
    except NoDeviceError:
        raise EngineError(
            "kernel_backend='triton' on a CPU computes in Triton's interpreter, and this process does not have it: set "
            "TRITON_INTERPRET=1 before the process starts, or leave the engine to processes of its own, which are "
            "started with it (enable_multiprocessing=True)"
        ) from None
