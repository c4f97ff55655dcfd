"""Every weight quantization method the engine has."""

from collections.abc import Callable

from staticfire.engine.errors import EngineError
from staticfire.engine.quantization.base import QuantizationMethod
from staticfire.engine.quantization.experts_int8 import ExpertsInt8
from staticfire.engine.quantization.none import Unquantized
from staticfire.kernels.dispatch import Backend

METHODS: dict[str | None, Callable[[Backend], QuantizationMethod]] = {
    None: Unquantized,
    "experts_int8": ExpertsInt8,
}
"""Name in the configuration -> method."""


def quantization_method(name: str | None, backend: Backend = "torch") -> QuantizationMethod:
    """Make the method called `name`, which works with the ops of `backend`; None computes in the model's dtype.

    Raises:
        EngineError: The engine has no such method.
    """
    if name not in METHODS:
        known = ", ".join(str(method) for method in METHODS if method)
        raise EngineError(f"quantization={name!r}: the engine has no such method; it has {known}")
    return METHODS[name](backend)
