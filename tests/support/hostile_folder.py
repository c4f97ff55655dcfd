"""A folder whose modules tell when anybody imports them, under the names that Python programs import most."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NAMES = tuple(
    """
    abc ast argparse asyncio base64 bisect click collections concurrent contextlib copy csv ctypes dataclasses datetime
    enum functools gc glob hashlib heapq importlib inspect io itertools json logging math msgspec multiprocessing numpy
    operator pathlib pickle platform pydantic queue random re regex rich runpy safetensors select selectors shutil
    signal sitecustomize site socket sqlite3 string struct subprocess sympy sys tempfile threading tokenize tokenizers
    tomllib torch traceback transformers triton types typing usercustomize uuid vllm warnings weakref yaml zipfile
    jinja2 huggingface_hub hypothesis staticfire kernels engine harness conftest _staticfire_agent
    """.split()  # noqa: SIM905 -- a table of names
)
"""Standard and third-party modules, our own packages, and what Python imports by itself."""

SUITE = """
from vllm import LLM

llm = LLM("ai21labs/AI21-Jamba-1.5-Mini", max_model_len=4096, block_size=16, tensor_parallel_size={size})
"""
FILLERS = 130
"""Enough files for `check` to read them in several processes."""


class HostileFolder:
    """The folder, and what was imported from it so far."""

    def __init__(self, base: Path) -> None:
        """Write it below `base`."""
        self.path = base / "checkout"
        self.below = self.path / "tests" / "unit"
        self.markers = base / "markers"
        self.below.mkdir(parents=True)
        self.markers.mkdir()
        for name in NAMES:
            text = f"open({str(self.markers / name)!r}, 'w').close()\nraise SystemExit('imported {name}')\n"
            (self.path / f"{name}.py").write_text(text)
        for number in range(FILLERS):
            (self.path / f"suite_{number}.py").write_text(SUITE.format(size=1 + number % 2))

    def imported(self) -> list[str]:
        """Names of the modules that were imported."""
        return sorted(path.name for path in self.markers.iterdir())


def environment(**more: str) -> dict[str, str]:
    """The environment of a user who does not know of PYTHONSAFEPATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VLLM_"))}
    return {**kept, **more}


def run(command: Sequence[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def program() -> str:
    """The console script, which is what a user types."""
    return str(Path(sys.executable).with_name("staticfire"))
