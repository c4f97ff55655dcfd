"""Model classes: inspected in this process where that works, in a child process where it does not.

The engine inspects every class in a child of its own, at about ten seconds each; nothing it wants to know (which
interfaces a class has) needs that. Its cache on disk is used and filled as ever.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from .guard import ForeignError
from .standin import ENGINE, StandInFinder

MODULE = "vllm.model_executor.models.registry"


class Inspection:
    """Watches how model classes are found.

    Attributes:
        failed: Architecture -> why its class cannot be inspected or loaded; stays, for the engine remembers it too.
        asked: Architectures of `failed` that the current question touched.
    """

    def __init__(self, finder: StandInFinder, child_path: str, source: str = "") -> None:
        """Prepare.

        Args:
            finder: Where packages that are found to be absent are noted.
            child_path: A folder whose `sitecustomize` presents the device in a child process.
            source: A folder that holds the engine's package, where that is not the installed one.
        """
        self._finder = finder
        self._child_path = child_path
        self._source = source
        self._why = ""
        self.failed: dict[str, str] = {}
        self.asked: list[str] = []

    def install(self) -> None:
        """Take over the engine's model registry."""
        registry: Any = importlib.import_module(MODULE)
        in_child = registry._run_in_subprocess  # noqa: SLF001 -- the one door of every inspection
        registry._run_in_subprocess = lambda function: self._inspect(function, in_child)  # noqa: SLF001
        for value in list(vars(registry).values()):
            if isinstance(value, type) and "load_model_cls" in vars(value) and hasattr(value, "__dataclass_fields__"):
                value.load_model_cls = self._leniently(value.load_model_cls)  # type: ignore[attr-defined]
        for name in ("_try_inspect_model_cls", "_try_load_model_cls"):
            setattr(registry, name, self._watched(getattr(registry, name)))

    def _watched(self, find: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(find)
        def wrapped(architecture: str, model: Any) -> Any:
            self._why = ""
            found = find(architecture, model)
            if found is None:
                self.failed.setdefault(architecture, self._why or "no reason was given")
                self.asked.append(architecture)
            return found

        return wrapped

    def _leniently(self, load: Callable[..., Any]) -> Callable[..., Any]:
        """Load a class, standing in for packages that turn out to be absent."""

        @functools.wraps(load)
        def wrapped(model: Any) -> Any:
            return self._retried(lambda: load(model))

        return wrapped

    def _retried(self, act: Callable[[], Any]) -> Any:
        for _ in range(8):
            try:
                with self._finder.lenient():
                    return act()
            except ImportError as error:
                absent = absent_package(error)
                if absent is None or absent in self._finder.missing:
                    self._why = f"{type(error).__name__}: {error}"
                    raise
                self._finder.missing.add(absent)
            except Exception as error:
                self._why = f"{type(error).__name__}: {error}"
                raise
        raise ImportError(f"too many packages are absent: {', '.join(sorted(self._finder.missing))}")

    def _inspect(self, function: Callable[[], Any], in_child: Callable[[Callable[[], Any]], Any]) -> Any:
        try:
            return self._retried(function)
        except (ImportError, OSError):
            raise  # a child lacks the same package or library, and takes ten seconds to find out
        except ForeignError:
            raise  # a child would import what was refused here
        except Exception as error:  # noqa: BLE001 -- whatever else an import can raise
            here = f"{type(error).__name__}: {error}"
        before = dict(os.environ)
        parts = (self._child_path, self._source, before.get("PYTHONPATH", ""))
        path = os.pathsep.join(part for part in parts if part)
        os.environ.update(PYTHONPATH=path, STATICFIRE_PROBE_MISSING=",".join(sorted(self._finder.missing)))
        try:
            return in_child(function)
        except Exception as error:
            there = str(error).strip().splitlines()[-1:] or [""]
            self._why = f"in process: {here}; in a child process: {there[0]}"
            raise
        finally:
            os.environ.clear()
            os.environ.update(before)


def absent_package(error: BaseException) -> str | None:
    """The top-level package outside the engine and the standard library that an import lacked, if that was why."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ModuleNotFoundError) and seen.name:
            top = seen.name.partition(".")[0]
            if top != ENGINE and top not in sys.stdlib_module_names:
                return top
        seen = seen.__cause__ or seen.__context__
    return None
