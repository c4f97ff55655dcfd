"""Which vLLM an interpreter has, found without importing it: a warm run must not pay for starting an engine."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from staticfire.harness.errors import InputError
from staticfire.harness.probe.vllm import look

_LOOK: Final = """
import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.metadata as m, importlib.util as u, json
sys.path[:0] = sys.argv[1:]
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
_VERSION: Final = re.compile(r"""^(?:Version: |__version__ = version = ['"]|version = ['"])([\w.+!-]+)""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Installed:
    """A vLLM that can be asked.

    Attributes:
        python: The interpreter, as it was named.
        version: Version of vLLM, or `source` for a tree that carries none.
        folder: The package's folder.
        digest: Hash of its Python files and of the versions beside it.
        versions: Distribution -> version, of what decides with it.
        source: The tree that holds the package, where it is not the one that is installed.
    """

    python: str
    version: str
    folder: str
    digest: str
    versions: dict[str, str]
    source: str = ""


def find(
    python: str, *, source: Path | None = None, limit: float = 20, say: Callable[[str], None] = lambda _: None
) -> Installed:
    """Look at an interpreter.

    Args:
        python: A path or a name on PATH; a script that starts an interpreter will do.
        source: A tree with the sources of vLLM, built or not, asked in place of what the interpreter has installed.
        limit: Seconds to wait.
        say: Told what is waited for, when that takes long.

    Raises:
        InputError: It cannot be run, or has no vLLM.
    """
    tree = source_tree(source) if source is not None else None
    said = _said(python, look.run(python, ["-c", _LOOK, *filter(None, [str(tree or "")])], limit, say))
    if not said["folder"]:
        raise InputError(
            f"--engine-python {python}: has no vLLM (Python {said['python']}). Name the interpreter that has it: "
            "--engine-python /path/to/bin/python."
        )
    versions = {"python": said["python"], **said["versions"]}
    folder = Path(said["folder"])
    if tree is not None:
        versions["vllm"] = _tree_version(tree)
        folder = tree / "vllm"
        if not versions["torch"]:
            raise InputError(
                f"--engine-python {python}: has no torch, which the sources in {tree} need (Python {said['python']}). "
                "Name an interpreter that has what they require: --engine-python /path/to/bin/python."
            )
    digest = hashlib.sha256(json.dumps(versions, sort_keys=True).encode())
    digest.update(tree_digest(folder).encode())
    # The engine runs in a folder of its own, where a relative path would lead nowhere. Links stay: a venv is one.
    python = os.path.abspath(python) if os.sep in python else python  # noqa: PTH100 -- Path.absolute keeps `..`
    version = versions["vllm"] or "source"
    return Installed(python, version, str(folder), digest.hexdigest(), versions, str(tree or ""))


def source_tree(given: Path) -> Path:
    """The folder that holds the package `vllm`, of a checkout or of the package itself.

    Raises:
        InputError: There is none.
    """
    for tree in (given, given.parent):
        needed = (tree / "vllm" / "__init__.py", tree / "vllm" / "engine" / "arg_utils.py")
        if all(path.is_file() for path in needed) and (tree is given or given.name == "vllm"):
            return tree.resolve()
    raise InputError(
        f"--engine-source {given}: holds no sources of vLLM; name the folder of a checkout, "
        "in which vllm/__init__.py lies."
    )


def _tree_version(tree: Path) -> str:
    """The version that a tree carries; `source` where it carries none."""
    for name in ("PKG-INFO", "vllm/_version.py"):
        try:
            found = _VERSION.search((tree / name).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if found:
            return f"{found[1]} (source)"
    return "source"


def _said(python: str, done: look.Said) -> dict[str, Any]:
    """What the script found out."""
    if done.status != 0 or not done.out:
        how = f"signal {-done.status}" if done.status < 0 else f"status {done.status}"
        why = f": {done.errors[-1].strip()[:300]}" if done.errors else ""
        raise InputError(f"--engine-python {python}: is no Python interpreter: it ended with {how}{why}.")
    try:
        said = json.loads(done.out[-1])
    except ValueError as error:
        printed = done.out[-1][:200]
        raise InputError(f"--engine-python {python}: is no Python interpreter: it printed {printed!r}.") from error
    if not isinstance(said, dict) or not {"python", "folder", "versions"} <= set(said):
        raise InputError(f"--engine-python {python}: is no Python interpreter: it printed {done.out[-1][:200]!r}.")
    return said


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
