"""Where the harness keeps what it can make again, how it writes a file whole, and opens one that may be a trap.

In a folder that another program may have prepared, a name can be a link to somebody's file, or a pipe that nobody
writes to. Those are neither written through nor waited for.
"""

import errno
import os
import stat
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


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """Open a regular file, and never wait: no pipe, no device.

    Args:
        path: The file.
        flags: As of `os.open`.
        follow: Whether the name may be a link to it.

    Raises:
        OSError: It cannot be opened, or is something else.
    """
    link = 0 if follow else os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags | link | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "is a symbolic link", str(path)) from error
        if error.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, "is no regular file", str(path)) from error
        raise
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "is no regular file", str(path))


def read_regular(path: Path, *, follow: bool = False) -> bytes:
    """Read a regular file; see `open_regular`."""
    with os.fdopen(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
        return file.read()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
