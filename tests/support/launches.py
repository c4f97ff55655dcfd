"""What a launcher passes to its kernel, in the form in which it is compiled ahead of time."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
import torch
import triton.language as tl

from staticfire.kernels.variant import TritonType, Variant

_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int8: "i8",
    torch.bool: "i1",
    torch.float8_e5m2: "fp8e5",
    torch.float8_e4m3fn: "fp8e4nv",
}


class Launch(NamedTuple):
    """One launch.

    Attributes:
        grid: Programs in each direction.
        signature: As `Variant.signature`; tensors are taken to be aligned.
        constexprs: As `Variant.constexprs`, dtypes as Triton's own.
        options: `num_warps` and the like, where they were passed.
    """

    grid: tuple[int, ...]
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    options: Mapping[str, int]

    def assert_is(self, variant: Variant) -> None:
        """Fail unless `variant` is what this launch would compile."""
        constants = {k: getattr(tl, v.name) if isinstance(v, TritonType) else v for k, v in variant.constexprs.items()}
        assert dict(self.signature) == dict(variant.signature)
        assert {k: (type(v), v) for k, v in self.constexprs.items()} == {k: (type(v), v) for k, v in constants.items()}
        assert self.options.get("num_warps", 4) == variant.num_warps
        assert self.options.get("num_stages") == variant.num_stages


def record(module: Any, kernel: str, call: Callable[[], object]) -> list[Launch]:
    """Run a launcher with a kernel that does nothing.

    Args:
        module: The op's module `triton`.
        kernel: Name of the kernel in it.
        call: Runs the launcher.

    Returns:
        Its launches.
    """
    function = getattr(module, kernel)
    parameters = inspect.signature(function.fn).parameters
    launches: list[Launch] = []

    class Kernel:
        def __getitem__(self, grid: Any) -> Callable[..., None]:
            def launch(*args: Any, **kwargs: Any) -> None:
                options: dict[str, int] = {k: kwargs.pop(k) for k in ("num_warps", "num_stages") if k in kwargs}
                values = inspect.signature(function.fn).bind(*args, **kwargs).arguments
                signature, constants = {}, {}
                for name, value in values.items():
                    constant = "constexpr" in str(parameters[name].annotation)
                    if constant or value is None or (isinstance(value, int) and value == 1):
                        constants[name] = value
                    elif isinstance(value, torch.Tensor):
                        signature[name] = f"*{_NAMES[value.dtype]}:16"
                    elif isinstance(value, float):
                        signature[name] = "fp32"
                    else:
                        signature[name] = "i32:16" if value % 16 == 0 else "i32"
                launches.append(Launch(tuple(grid), signature, constants, options))

            return launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, kernel, Kernel())
        call()
    return launches
