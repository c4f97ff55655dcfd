"""Modules and objects that stand in for what this machine cannot load, found as the engine asks for them."""

import importlib
import importlib.abc
import importlib.machinery
import os
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

ENGINE = "vllm"
# What vLLM calls its compiled modules where none of them is built: `_C`, `_moe_C`, `_C_stable_libtorch`.
_COMPILED_NAME = re.compile(r"(^|_)C(_|$)|_version$|vllm_flash_attn|flash_attn_interface")


def engine_path(path: str) -> str | None:
    """A file of the engine as `vllm/...`, whatever the folder it is installed in; None for any other file."""
    module = sys.modules.get(ENGINE)
    for folder in getattr(module, "__path__", ()):
        if path.startswith(folder + os.sep):
            return f"{ENGINE}/{path[len(folder) + 1 :]}".replace(os.sep, "/")
    return None


class _AnythingMeta(type):
    """The class of classes that have every attribute."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(f"{cls.__qualname__}.{name}")


class Anything(metaclass=_AnythingMeta):
    """An object that can be called, subclassed, indexed and asked for any attribute, and never computes anything."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take whatever the real class takes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(name)

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        """Give back what is decorated, or something of no use."""
        # As a decorator it must give back what it decorates.
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else anything("result")

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __getitem__(self, _: Any) -> Any:
        return anything("item")


def anything(name: str) -> type[Anything]:
    """A fresh stand-in; a class, so that it can be a base class, an enumeration's member or a function."""
    made: Any = _AnythingMeta(name.rpartition(".")[2] or "anything", (Anything,), {"__module__": "stand_in"})
    return cast("type[Anything]", made)


class StandInModule(types.ModuleType):
    """A module with every attribute and, once registered with the finder, every submodule."""

    def __init__(self, name: str) -> None:
        """Make an empty package of that name."""
        super().__init__(name)
        self.__path__: list[str] = []
        self.__version__ = "0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = anything(name)
        setattr(self, name, value)
        return value


class _StandInLoader(importlib.abc.Loader):
    """Loads a stand-in, after trying the real extension where there is one."""

    def __init__(self, real: Any = None, note: Callable[[str, str], None] | None = None) -> None:
        self._real = real
        self._note = note
        self._failed = real is None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """See `importlib.abc.Loader.create_module`."""
        if self._real is not None:
            try:
                return cast("types.ModuleType | None", self._real.create_module(spec))
            except (ImportError, OSError) as error:
                self._failed = True
                if self._note is not None:
                    self._note(spec.name, str(error))
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if not self._failed:
            self._real.exec_module(module)


def _asked_by_engine() -> bool:
    """Whether the engine's own code looks for a module, or a module that stands in for it.

    Others that look whether a package is there, such as transformers, go on to use it.
    """
    frame: types.FrameType | None = sys._getframe(2)  # noqa: SLF001 -- who asks is all that matters
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith(("importlib", "_frozen_importlib")):
            return name == ENGINE or name.startswith(f"{ENGINE}.")
        frame = frame.f_back
    return False


class StandInFinder(importlib.abc.MetaPathFinder):
    """Answers for the engine's compiled modules, and for the packages that an inspection was found to lack.

    Attributes:
        failed: Compiled modules that could not be loaded, with the loader's reason.
        missing: Top-level packages outside the engine that stand in while `lenient` is set.
    """

    def __init__(self) -> None:
        """Start with nothing but the engine's own extensions."""
        self.failed: dict[str, str] = {}
        self.missing: set[str] = set()
        self._lenient = False
        self._stands_in: Callable[[str], bool] = lambda _: False
        self._built: bool | None = None

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,  # noqa: ARG002 -- the protocol of finders
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if fullname.startswith(ENGINE + "."):
            return self._engine_spec(fullname, path)
        top = fullname.partition(".")[0]
        if (self._lenient and top in self.missing) or (self._stands_in(top) and _asked_by_engine()):
            return importlib.machinery.ModuleSpec(fullname, _StandInLoader(), is_package=True)
        return None

    @contextmanager
    def lenient(self) -> Iterator[None]:
        """Let the packages of `missing` be importable for a while; afterwards they are absent again."""
        self._lenient = True
        try:
            yield
        finally:
            self._lenient = False
            for name in [name for name, module in sys.modules.items() if isinstance(module, StandInModule)]:
                if name.partition(".")[0] in self.missing:
                    del sys.modules[name]

    @contextmanager
    def standing_in(self, stands_in: Callable[[str], bool]) -> Iterator[None]:
        """Let the top-level packages that `stands_in` names be importable for a while."""
        self._stands_in = stands_in
        try:
            yield
        finally:
            self._stands_in = lambda _: False
            for name in [name for name, module in sys.modules.items() if isinstance(module, StandInModule)]:
                if stands_in(name.partition(".")[0]):
                    del sys.modules[name]

    def _engine_spec(self, fullname: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
            spec.loader = _StandInLoader(spec.loader, self.failed.__setitem__)
            return spec
        parent = sys.modules.get(fullname.rpartition(".")[0])
        if spec is None and isinstance(parent, StandInModule):
            return importlib.machinery.ModuleSpec(fullname, _StandInLoader(), is_package=True)
        if spec is None and _COMPILED_NAME.search(fullname.rpartition(".")[2]) and not self._is_built():
            self.failed[fullname] = "not built"
            return importlib.machinery.ModuleSpec(fullname, _StandInLoader(), is_package=True)
        return None

    def _is_built(self) -> bool:
        """Whether the engine's package holds any extension; a source tree holds none."""
        if self._built is None:
            where = sys.modules[ENGINE].__path__
            self._built = any(entry.suffix in (".so", ".pyd") for folder in where for entry in Path(folder).iterdir())
        return self._built


class PostImport(importlib.abc.MetaPathFinder):
    """Runs a function right after a module has been imported, before its importer sees it."""

    def __init__(self) -> None:
        """Start with no functions."""
        self._after: dict[str, list[Callable[[types.ModuleType], None]]] = {}

    def after(self, name: str, action: Callable[[types.ModuleType], None]) -> None:
        """Run an action after the import of a module, or now if it is imported already."""
        if name in sys.modules:
            action(sys.modules[name])
        else:
            self._after.setdefault(name, []).append(action)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,  # noqa: ARG002 -- the protocol of finders
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if fullname not in self._after:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        real = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            real(module)
            for action in self._after.pop(fullname, ()):  # only now: asking for a spec is not importing
                action(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
