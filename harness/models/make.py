"""Tiny Hugging Face checkpoints, made on demand through transformers into a cache folder.

The folder's name holds a hash of everything that decides its content (model file, training text, this code, library
versions), so a changed input makes a new folder and an unchanged one is found again. A folder appears by one rename,
whole or not at all; a lock file keeps two processes from making the same one twice. A folder whose files are no longer
what was written is made anew.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from staticfire.harness.errors import InputError
from staticfire.harness.files import default_cache_dir, open_regular
from staticfire.harness.models import catalog
from staticfire.harness.models.catalog import ModelFile
from staticfire.harness.models.prompts import passages
from staticfire.harness.oracle.isolation import take_root_off_path

_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors")
_CODE = ("make.py", "weights.py", "tokenizer.py")
PROVENANCE = "staticfire.json"


def path_of(name: str, cache_dir: Path | None = None) -> Path:
    """Where the checkpoint of a tiny model lies, made or not.

    Args:
        name: A tiny model of `matrices/models/`.
        cache_dir: Cache folder; `default_cache_dir()` when None.

    Raises:
        InputError: Unknown name, or a model that is too large to make.
    """
    model = _tiny_model(name)
    return (cache_dir or default_cache_dir()) / "checkpoints" / f"{name}-{_digest(model)}"


def ensure(name: str, cache_dir: Path | None = None) -> Path:
    """Make the checkpoint of a tiny model, or find the one made before.

    Args:
        name: A tiny model of `matrices/models/`.
        cache_dir: Cache folder; `default_cache_dir()` when None.

    Returns:
        A folder with config.json, generation_config.json, model.safetensors, tokenizer.json, tokenizer_config.json
        and staticfire.json (seed, gain, library versions and file digests).

    Raises:
        InputError: Unknown name, or a model that is too large to make.
    """
    target = path_of(name, cache_dir)
    if _sound(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent / f".{target.name}.lock"):
        if not _sound(target):
            _make(_tiny_model(name), target)
    return target


def _sound(folder: Path) -> bool:
    """Whether a checkpoint is there and its files are the ones that were written."""
    try:
        written = json.loads((folder / PROVENANCE).read_bytes())["files"]
        return bool(written == _digests(folder))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _digests(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.iterdir() if path.name != PROVENANCE)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _tiny_model(name: str) -> ModelFile:
    model = catalog.load(name)
    if model.tiny is None:
        tiny = ", ".join(other for other in catalog.names() if catalog.load(other).tiny)
        raise InputError(f"{name} is only resolved, never run: its checkpoint is not ours to make. Tiny: {tiny}.")
    return model


def _digest(model: ModelFile) -> str:
    """Twelve hex digits over everything that decides the checkpoint's content."""
    code = files("staticfire.harness.models")
    parts = {
        "model": asdict(model),
        "text": passages(),
        "libraries": _versions(),
        "code": [code.joinpath(name).read_text(encoding="utf-8") for name in _CODE],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def _versions() -> dict[str, str]:
    try:
        return {library: version(library) for library in _LIBRARIES}
    except PackageNotFoundError as error:
        raise InputError(f"checkpoints are made with {', '.join(_LIBRARIES)}: install staticfire[engine].") from error


def _make(model: ModelFile, target: Path) -> None:
    """Write into a scratch folder beside the target, then rename. The caller holds the target's lock."""
    take_root_off_path()  # before transformers loads
    from staticfire.harness.models.tokenizer import train  # noqa: PLC0415 -- torch loads here, not when listing
    from staticfire.harness.models.weights import build  # noqa: PLC0415 -- the same

    assert model.tiny is not None
    for stale in target.parent.glob(f".{target.name}-*"):  # of a process that was killed
        shutil.rmtree(stale, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with _no_progress_bar():
            build(model.config, model.tiny).save_pretrained(scratch)
        train(passages().values(), model.config).save_pretrained(scratch)
        provenance = {
            "model": model.name,
            "seed": model.tiny.seed,
            "gain": model.tiny.gain,
            "libraries": _versions(),
            "files": _digests(scratch),
        }
        (scratch / PROVENANCE).write_text(json.dumps(provenance, indent=2) + "\n", encoding="utf-8")
        scratch.chmod(0o755)  # mkdtemp makes it private; a cache may be shared
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing a bar over one shard; the caller's setting comes back."""
    from transformers.utils import logging  # noqa: PLC0415 -- loaded by now

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel drops it if the holder dies."""
    with os.fdopen(open_regular(path, os.O_CREAT | os.O_RDWR), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
