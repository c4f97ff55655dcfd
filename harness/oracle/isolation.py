"""Import transformers safely. The repository's folder `kernels/` must not pose as Hugging Face's package of that name.

transformers looks for an importable `kernels` when it is imported. Running from the root of a checkout puts that root
on `sys.path`, and transformers then dies on importing names from our folder.
"""

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import staticfire.kernels as our_kernels


@cache
def import_transformers() -> ModuleType:
    """Take the repository root off `sys.path` for good, and return transformers, quiet and offline.

    Raises:
        ModuleNotFoundError: transformers is not installed.
    """
    take_root_off_path()
    transformers = importlib.import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def take_root_off_path() -> None:
    """Remove every entry of `sys.path` under which `import kernels` would find our folder."""
    ours = Path(our_kernels.__file__ or "").resolve().parent
    sys.path[:] = [entry for entry in sys.path if not _holds(entry, ours)]
    posing = sys.modules.get("kernels")
    if posing is not None and Path(getattr(posing, "__file__", None) or "").resolve().parent == ours:
        del sys.modules["kernels"]


def _holds(entry: str, folder: Path) -> bool:
    candidate = Path(entry or ".") / folder.name
    return candidate.is_dir() and candidate.resolve() == folder
