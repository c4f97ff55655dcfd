"""Where the harness keeps what it can make again, and how it writes a file whole."""

import os
import tempfile
from pathlib import Path


def default_cache_dir() -> Path:
    """`$STATICFIRE_CACHE`, else `$XDG_CACHE_HOME/staticfire`, else `~/.cache/staticfire`."""
    if own := os.environ.get("STATICFIRE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "staticfire"


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: a reader sees the former file or the new one, never a part.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
