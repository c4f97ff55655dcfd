"""Which vLLM an interpreter has, found without importing it: a warm run must not pay for starting an engine."""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from staticfire.harness.errors import InputError

_LOOK: Final = """
import importlib.metadata as m, importlib.util as u, json, sys
sys.path[:] = [p for p in sys.path if p]
spec = u.find_spec("vllm")
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return ""
names = ["vllm", "torch", "transformers", "triton", "pydantic", "flashinfer-python", "huggingface_hub"]
print(json.dumps({
    "python": sys.version.split()[0],
    "folder": spec and list(spec.submodule_search_locations or [""])[0],
    "versions": {name: version(name) for name in names},
}))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed vLLM.

    Attributes:
        python: The interpreter, as it was named.
        version: Version of vLLM, or `source` for a tree that carries none.
        folder: The package's folder.
        digest: Hash of its Python files and of the versions beside it.
        versions: Distribution -> version, of what decides with it.
    """

    python: str
    version: str
    folder: str
    digest: str
    versions: dict[str, str]


def find(python: str, *, limit: float = 60) -> Installed:
    """Look at an interpreter.

    Args:
        python: A path or a name on PATH; a script that starts an interpreter will do.
        limit: Seconds to wait.

    Raises:
        InputError: It cannot be run, or has no vLLM.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHOME"}
    try:
        done = subprocess.run(  # noqa: S603 -- running the interpreter that the user named is the point
            [python, "-c", _LOOK], capture_output=True, text=True, timeout=limit, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"--engine-python {python}: cannot be run: {error}.") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise InputError(f"--engine-python {python}: is no Python interpreter: {why}.")
    try:
        said = json.loads(lines[-1])
    except ValueError as error:
        raise InputError(f"--engine-python {python}: is no Python interpreter: it printed {lines[-1]!r}.") from error
    if not said["folder"]:
        raise InputError(
            f"--engine-python {python}: has no vLLM (Python {said['python']}). Name the interpreter that has it: "
            "--engine-python /path/to/bin/python."
        )
    versions = {"python": said["python"], **said["versions"]}
    digest = hashlib.sha256(json.dumps(versions, sort_keys=True).encode())
    digest.update(tree_digest(Path(said["folder"])).encode())
    # The engine runs in a folder of its own, where a relative path would lead nowhere. Links stay: a venv is one.
    python = os.path.abspath(python) if os.sep in python else python  # noqa: PTH100 -- Path.absolute keeps `..`
    return Installed(python, versions["vllm"] or "source", said["folder"], digest.hexdigest(), versions)


def tree_digest(folder: Path) -> str:
    """Hash the paths and contents of all Python files below a folder."""
    digest = hashlib.sha256()
    for path in _sources(folder):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):
                yield Path(where, name)
