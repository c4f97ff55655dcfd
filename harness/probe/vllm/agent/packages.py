"""Packages that the engine requires and this machine lacks, such as a device's kernels: they are there on the device.

They stand in while the worker is asked, and are absent again afterwards: the front end sees this machine as it is.
"""

import functools
import importlib
import importlib.machinery
import importlib.metadata
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from .standin import ENGINE, StandInFinder

_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
# Distributions put the name of their maker before that of what is imported: nvidia-cutlass-dsl has `cutlass`.
_MAKERS = ("nvidia-", "apache-")
# FlashInfer's kernels, built ahead. Without them the engine looks for a compiler and for the network, and finds neither
# here; its own images have them.
_PREBUILT = frozenset({"flashinfer_cubin"})
# Modules of the engine that remember what they found installed.
_REMEMBER = ("utils", "v1.attention", "vllm_flash_attn", "platforms")
_CACHED = type(functools.lru_cache(lambda: None))


def required(device: str) -> frozenset[str]:
    """Names of the distributions that the engine requires on a kind of device, in lower case with dashes.

    They stand in the metadata of the installed distribution, or in the requirements of a source tree.
    """
    root = Path(sys.modules[ENGINE].__path__[0]).parent
    lines: list[str] = []
    for metadata in root.glob(f"{ENGINE}-*.dist-info/METADATA"):
        text = metadata.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        lines += re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)
    if not lines:
        lines = _listed(root / "requirements" / f"{device}.txt", set())
    if not lines:
        try:
            lines = importlib.metadata.requires(ENGINE) or []
        except importlib.metadata.PackageNotFoundError:
            lines = []
    always = (line for line in lines if "extra ==" not in line)
    return frozenset(found[1].lower().replace("_", "-") for line in always if (found := _NAME.match(line)))


def _listed(file: Path, seen: "set[Path]") -> "list[str]":
    """Lines of a requirements file and of those that it includes."""
    if file in seen or not file.is_file():
        return []
    seen.add(file)
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        include = re.match(r"\s*-r\s+(\S+)", line)
        lines += _listed(file.parent / include[1], seen) if include else [line.partition("#")[0]]
    return lines


def provides(distribution: str, module: str) -> bool:
    """Whether a distribution's name says that it has a top-level module: `flashinfer-python` has `flashinfer`."""
    wanted = module.lower().replace("_", "-")
    names = [distribution, *(distribution[len(maker) :] for maker in _MAKERS if distribution.startswith(maker))]
    return any(name == wanted or name.startswith(f"{wanted}-") for name in names)


class Packages:
    """Presents what the engine requires on the device."""

    def __init__(self, finder: StandInFinder, device: str) -> None:
        """Look up what the engine requires; the engine is imported."""
        self._finder = finder
        self._required = required(device)
        self._known: dict[str, bool] = {}

    def stands_in(self, module: str) -> bool:
        """Whether a top-level module is absent here and present on the device."""
        if module not in self._known:
            wanted = module in _PREBUILT or any(provides(name, module) for name in self._required)
            self._known[module] = wanted and importlib.machinery.PathFinder.find_spec(module) is None
        return self._known[module]

    @contextmanager
    def presented(self) -> Iterator[None]:
        """Let what stands in be importable, and tensors on the device be made without their memory."""
        _forget()
        try:
            with self._finder.standing_in(self.stands_in), _without_memory():
                yield
        finally:
            _forget()


def _forget() -> None:
    """Let the engine find out anew what is installed."""
    prefixes = tuple(f"{ENGINE}.{name}" for name in _REMEMBER)
    for name, module in list(sys.modules.items()):
        if name.startswith(prefixes):
            for value in list(vars(module).values()):
                if isinstance(value, _CACHED):
                    value.cache_clear()


def _without_memory() -> Any:
    """A mode in which tensors on a device have shapes and no memory; none where torch has no modes."""
    torch = importlib.import_module("torch")
    overrides = getattr(torch, "overrides", None)
    return _meta_mode(overrides.TorchFunctionMode)() if overrides is not None else nullcontext()


@functools.lru_cache(maxsize=1)
def _meta_mode(base: type) -> type:
    def function(_: Any, called: Callable[..., Any], __: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = dict(keywords or {})
        if str(keywords.get("device", "")).startswith("cuda"):
            keywords["device"] = "meta"
        return called(*arguments, **keywords)

    return type("TensorsWithoutMemory", (base,), {"__torch_function__": function})
