"""Stops the engine from touching what a question names: modules, files, folders, programs and machines.

The text of a question comes from files that are only read. Whoever asks leaves out what is known to name code; this is
for what is not known: a new field, an option of a plugin. While a question is answered, whatever the engine would
import, run, write or reach because the question names it is refused where Python would do it, by an audit hook and a
finder. What was refused is remembered, for the engine may swallow the error.
"""

import contextlib
import importlib.metadata
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import PathFinder
from typing import Any

ENGINE = "vllm"
_WRITES = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate",
    "shutil.copyfile", "shutil.copytree", "shutil.move", "shutil.rmtree",
}  # fmt: skip
_STARTS = {"os.exec", "os.posix_spawn", "os.system", "subprocess.Popen"}
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MOST = 1 << 20
"""Bytes of a named file that are looked at."""
_HERE = {"", "0.0.0.0", "127.0.0.1", "::", "::1", "localhost"}  # noqa: S104 -- compared, not bound


class ForeignError(Exception):
    """The engine was about to do what a question names; the text says what."""


class Guard:
    """Refuses, while a question is watched.

    Attributes:
        refused: What the engine was about to do for the current question.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """Watch nothing yet.

        Args:
            allowed: Folders of the probe, in which the engine may write although a question names one above them.
        """
        self.refused: list[str] = []
        self._own = _requirements()
        self._allowed = tuple(map(_real, [*allowed, tempfile.gettempdir(), "/dev", "/proc"]))
        self._active = False
        self._exempt: tuple[str, ...] = ()
        self._texts: set[str] = set()
        self._modules: set[str] = set()
        self._paths: tuple[str, ...] = ()
        self._code: tuple[str, ...] = ()
        self._checks: dict[str, Callable[[tuple[Any, ...]], None]] = {
            "exec": self._check_code,
            "import": self._check_library,
            "ctypes.dlopen": self._check_library,
            "open": self._check_open,
            "socket.connect": self._check_address,
            "socket.getaddrinfo": self._check_host,
            **dict.fromkeys(_WRITES, self._check_write),
            **dict.fromkeys(_STARTS, self._check_program),
        }

    def install(self) -> None:
        """Hook into this process, for good: an audit hook cannot be taken out."""
        sys.addaudithook(self._audit)
        sys.meta_path.insert(0, self)

    @contextlib.contextmanager
    def watch(self, question: "dict[str, Any]") -> Iterator[None]:
        """Refuse what a question names, as long as this is entered."""
        self.refused.clear()
        said = [question.get(name) for name in ("arguments", "argv", "environment")]
        texts = set(_texts(said))
        self._texts = texts
        self._paths = tuple({path for text in texts for path in _paths(text)})
        # a file of options or of loggers that is named holds names itself
        told = [*texts, *map(_content, self._paths)]
        self._modules = {name for text in told for name in _modules(text) if self._is_foreign(name)}
        roots = (*self._allowed, *(_real(entry) for entry in sys.path if entry))
        # a folder that is named may hold the environment itself, or all temporary files
        self._exempt = tuple(root for root in roots if _under(root, self._paths))
        self._code = (*self._paths, _real(str(question.get("model") or os.devnull)), _hub_modules())
        self._active = True
        try:
            yield
        finally:
            self._active = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002 -- the protocol's
        """Refuse a module that the question names; leave every other one to the other finders."""
        if self._active and name in self._modules and ("." in name or PathFinder.find_spec(name) is not None):
            self._refuse(f"import {name}")

    def _is_foreign(self, name: str) -> bool:
        if name in sys.modules or name.partition(".")[0] == ENGINE:
            return False
        # a word such as `triton` names a backend as well as what the backend imports
        return "." in name or name not in self._own

    def _audit(self, event: str, arguments: "tuple[Any, ...]") -> None:
        check = self._checks.get(event) if self._active else None
        if check is not None:
            check(arguments)

    def _check_code(self, arguments: "tuple[Any, ...]") -> None:
        file = getattr(arguments[0], "co_filename", "")
        if file and not file.startswith("<") and self._is_named(file, self._code):
            self._refuse(f"run {file}")

    def _check_library(self, arguments: "tuple[Any, ...]") -> None:
        for file in arguments[:2]:  # of an import, the name comes first
            if isinstance(file, str) and os.sep in file and self._is_named(file, self._code):
                self._refuse(f"load {file}")

    def _check_open(self, arguments: "tuple[Any, ...]") -> None:
        path, mode, flags = (*arguments, None, None)[:3]
        if any(letter in mode for letter in "wax+") if isinstance(mode, str) else (flags or 0) & _FLAGS:
            self._check_write((path,))

    def _check_write(self, arguments: "tuple[Any, ...]") -> None:
        for path in arguments[:2]:
            if isinstance(path, str | bytes | os.PathLike):
                text = os.fsdecode(path)
                if self._is_named(text, self._paths):
                    self._refuse(f"write {text}")

    def _check_program(self, arguments: "tuple[Any, ...]") -> None:
        words = [word for word in _texts(list(arguments[:2])) if os.sep in word or " " in word]
        named = next((word for word in words if word in self._texts or self._is_named(word, self._paths)), None)
        if named is not None and named != sys.executable:
            self._refuse(f"start {named}")

    def _check_address(self, arguments: "tuple[Any, ...]") -> None:
        if isinstance(arguments[1], tuple) and arguments[1]:
            self._check_host(arguments[1])

    def _check_host(self, arguments: "tuple[Any, ...]") -> None:
        host = arguments[0]
        text = host.decode(errors="replace") if isinstance(host, bytes) else host
        if isinstance(text, str) and text not in _HERE and any(text in one for one in self._texts):
            self._refuse(f"reach {text}")

    def _is_named(self, path: str, named: "tuple[str, ...]") -> bool:
        real = _real(path)
        return _under(real, named) and not _under(real, self._exempt)

    def _refuse(self, what: str) -> None:
        self.refused.append(what)
        raise ForeignError(f"the configuration would make the engine {what}")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _content(path: str) -> str:
    """What a file of options says; nothing where there is none, or it is no short text."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST:  # noqa: PTH113, PTH202 -- texts
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read(_MOST)
    except OSError:
        return ""


def _modules(text: str) -> Iterator[str]:
    """Names of modules that a text may mean: `a.b:C` means `a`, `a.b` and `a.b.C`."""
    for found in _NAME.findall(text):
        parts = found.split(".")
        yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _paths(text: str) -> Iterator[str]:
    """Files and folders that a text may mean, with their links followed."""
    for part in {text, *re.split(r"[\s\"'=,:;{}\[\]]+", text)}:
        bare = part.removeprefix("file://")
        if (os.sep in bare or bare.endswith(".py")) and bare.strip(os.sep) and "\0" not in bare:
            yield _real(os.path.expanduser(bare))  # noqa: PTH111 -- the same as the engine


def _real(path: str) -> str:
    return os.path.realpath(path)


def _under(path: str, folders: "tuple[str, ...]") -> bool:
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def _hub_modules() -> str:
    """Where transformers copies the code of checkpoints before it runs it."""
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")  # noqa: PTH111, PTH118
    return _real(os.environ.get("HF_MODULES_CACHE") or os.path.join(home, "modules"))  # noqa: PTH118


def _requirements() -> "set[str]":
    """Top-level names of what the engine requires, optional ones too: it imports them by itself."""
    try:
        lines = importlib.metadata.requires(ENGINE) or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    names = {re.split(r"[\s;\[=<>!~(]", line, maxsplit=1)[0] for line in lines}
    return {re.sub(r"[-.]+", "_", name).lower() for name in names} | {"torch", "triton", "transformers", "flashinfer"}
