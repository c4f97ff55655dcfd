"""What holds for every test: quiet threads, no network, one cache of checkpoints.

The environment is set while this file is imported, before any test module can import torch, and so that
processes started by tests inherit it.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

for name, value in {
    "PYTHONSAFEPATH": "1",  # no child may find kernels/ or engine/ under their bare names
    "OMP_NUM_THREADS": "1",  # xdist workers share the cores; more threads each only makes them wait
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",  # a test that reaches for a hub fails at once, everywhere
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # Kernels are tested in Triton's interpreter, which is chosen while triton is imported; what compiles for a GPU
    # does so in a process without this.
    "TRITON_INTERPRET": "1",
    "STATICFIRE_CACHE": str(ROOT / ".cache"),  # checkpoints are made once, not once a run
}.items():
    os.environ.setdefault(name, value)

# A shell's background job starts with Ctrl-C ignored, and whatever a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `python -m pytest` from the root puts the root there, and transformers would import our kernels/ for its own.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """The folder where tiny checkpoints and oracle outputs are kept between runs (variable STATICFIRE_CACHE)."""
    path = Path(os.environ["STATICFIRE_CACHE"])
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The checkout under test."""
    return ROOT
