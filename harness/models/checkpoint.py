"""From what a user calls a model to a folder that an engine can load."""

from pathlib import Path

from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog
from staticfire.harness.models.make import ensure


def checkpoint(asked: str, cache_dir: Path | None = None) -> Path:
    """Find the checkpoint of a model, or make that of a tiny one.

    Args:
        asked: A folder with a checkpoint, the name of a tiny model, or an id in the local Hugging Face cache.
        cache_dir: Cache folder of tiny models; the user's when None.

    Returns:
        A folder with a `config.json`. Whether its weights are whole is for the engine to say.

    Raises:
        InputError: There is no such model, or it is one of ours that is too large to make.
    """
    if asked in catalog.names():
        return ensure(asked, cache_dir)
    config = Path(catalog.find(asked).where)
    if config.name != "config.json":
        raise InputError(f"{asked}: an engine needs a folder with config.json and weights, not a file")
    return config.parent
