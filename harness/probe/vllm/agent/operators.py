"""Compiled operators: `torch.ops` namespaces whose extension could not be loaded answer with stand-ins."""

import functools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .standin import ENGINE, anything, engine_path

_USED = re.compile(rb"torch\.ops\.(\w+)")


class Operator:
    """Stands in for one compiled operator.

    Asked whether the device can do something (`cutlass_scaled_mm_supports_fp8(capability)`), it answers from the
    capability that is passed; called for anything else it computes nothing.
    """

    def __init__(self, namespace: str, name: str) -> None:
        """Name the operator."""
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        """Answer a question of support, else nothing of use."""
        if "support" in self.__name__:
            needed = 100 if "fp4" in self.__name__ else 89 if "fp8" in self.__name__ else 75
            return not arguments or not isinstance(arguments[0], int) or arguments[0] >= needed
        return anything(self.__name__)()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


_foreign: set[str] = set()
# Libraries of the engine that torch could not load; by custom their operators' namespace is named after the folder.
_unloaded: set[str] = set()


@functools.lru_cache(maxsize=1)
def extension_namespaces() -> frozenset[str]:
    """Namespaces that the engine's source uses and that nobody had defined before the engine was imported.

    Read from the source text: the engine's own extensions define them, so they differ between versions.
    """
    used: set[str] = set()
    for top in sys.modules[ENGINE].__path__:
        for folder, _, files in os.walk(top):
            for file in files:
                if file.endswith(".py"):
                    used.update(name.decode() for name in _USED.findall(Path(folder, file).read_bytes()))
    # The capital C is how vLLM names what it compiled; others belong to packages that may really be absent.
    return frozenset(name for name in used - _foreign if re.search(r"(^|_)C(_|$)", name))


def present_operators(torch: Any) -> None:
    """Make missing operators of the engine's extensions exist; torch's own namespaces are left alone."""
    # torch has no public way to list operators or to see that one is missing.
    _foreign.update(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names())  # noqa: SLF001
    namespace_type = torch._ops._OpNamespace  # noqa: SLF001
    real_getattr = namespace_type.__getattr__

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        try:
            return real_getattr(self, name)
        except AttributeError:
            if name.startswith("__") or not _stands_in(self.name):
                raise
            operator = Operator(self.name, name)
            setattr(self, name, operator)
            return operator

    namespace_type.__getattr__ = __getattr__
    real_load = torch.ops.load_library

    def load_library(path: Any) -> None:
        try:
            real_load(path)
        except OSError:
            if engine_path(str(Path(path).absolute())) is None:
                raise
            _unloaded.add(Path(path).parent.name)

    torch.ops.load_library = load_library
    for function in ("register_fake", "impl", "register_kernel", "register_autograd", "impl_abstract"):
        if hasattr(torch.library, function):
            setattr(torch.library, function, _forgiving(getattr(torch.library, function)))


def _stands_in(namespace: str) -> bool:
    return namespace in _unloaded or (ENGINE in sys.modules and namespace in extension_namespaces())


def _forgiving(register: Callable[..., Any]) -> Callable[..., Any]:
    """Let a registration pass that fails because the operator is one that only stands in."""

    @functools.wraps(register)
    def wrapped(operator: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            result = register(operator, *arguments, **keywords)
        except RuntimeError as error:
            if not _is_ours(operator, error):
                raise
            return lambda function: function
        if not callable(result) or (arguments and callable(arguments[0])):
            return result

        def decorate(function: Any) -> Any:
            try:
                return result(function)
            except RuntimeError as error:
                if not _is_ours(operator, error):
                    raise
                return function

        return decorate

    return wrapped


def _is_ours(operator: Any, error: RuntimeError) -> bool:
    namespace = str(getattr(operator, "_qualified_op_name", operator)).partition("::")[0]
    return "does not exist" in str(error) and _stands_in(namespace)
