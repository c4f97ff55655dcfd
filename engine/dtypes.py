"""From dtype names of the configuration to torch's dtypes."""

import torch

from staticfire.engine.errors import EngineError

DTYPES: dict[str, torch.dtype] = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}
"""Every dtype the engine computes in or keeps caches in."""


def torch_dtype(name: str, what: str) -> torch.dtype:
    """Return torch's dtype of that name.

    Raises:
        EngineError: The engine has no such dtype; `what` says whose it is.
    """
    if name not in DTYPES:
        raise EngineError(f"{what}: dtype {name!r} is not supported by this engine; it has {', '.join(DTYPES)}")
    return DTYPES[name]
