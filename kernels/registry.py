"""Every public op, one line each, and where its parts are. Imports neither torch nor triton.

An op's folder has `reference.py`, `torch.py`, `triton.py`, `variants.py` (`variants(target)`: what is compiled ahead of
time, of all ops of the folder) and `cost.py` (a function of the op's name, from shapes to a `Cost`).
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from staticfire.kernels.names import did_you_mean
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import Cost, Variant


class Op(NamedTuple):
    """A public op.

    Attributes:
        name: Public function.
        folder: Folder of `kernels/` that it is in.
    """

    name: str
    folder: str

    def part(self, which: str) -> Any:
        """Import one of its functions.

        Args:
            which: `reference`, `torch`, `triton` or `cost`: a module of its folder.

        Returns:
            The function of the op's name in it.
        """
        return getattr(import_module(f"staticfire.kernels.{self.folder}.{which}"), self.name)

    @property
    def public(self) -> Callable[..., Any]:
        """The function that everyone calls."""
        function: Callable[..., Any] = getattr(import_module(f"staticfire.kernels.{self.folder}"), self.name)
        return function

    @property
    def cost(self) -> Callable[..., Cost]:
        """From shapes, as keywords, to what they cost."""
        function: Callable[..., Cost] = self.part("cost")
        return function

    def variants(self, target: Target) -> list[Variant]:
        """What is compiled of it for a target."""
        module = import_module(f"staticfire.kernels.{self.folder}.variants")
        return [variant for variant in module.variants(target) if variant.op == self.name]


OPS: Mapping[str, Op] = {
    op.name: op
    for op in (
        Op("rms_norm", "rms_norm"),
        Op("fused_add_rms_norm", "rms_norm"),
        Op("rms_norm_parts", "rms_norm"),
        Op("silu_and_mul", "silu_and_mul"),
        Op("rotary_embedding", "rotary"),
        Op("causal_conv1d_varlen", "causal_conv1d"),
        Op("causal_conv1d_update", "causal_conv1d"),
        Op("selective_scan_varlen", "selective_scan"),
        Op("selective_state_update", "selective_scan"),
        Op("reshape_and_cache", "reshape_and_cache"),
        Op("paged_attention", "paged_attention"),
        Op("topk_softmax", "topk_softmax"),
        Op("fused_moe", "fused_moe"),
        Op("int8_linear", "int8_linear"),
        Op("quantize_per_channel", "int8_quant"),
        Op("state_copy", "state_copy"),
    )
}


def find_op(name: str) -> Op:
    """Look an op up.

    Args:
        name: Of the public function.

    Returns:
        It.

    Raises:
        ValueError: There is no such op.
    """
    if name not in OPS:
        raise ValueError(f"unknown op {name!r}; known: {', '.join(OPS)}{did_you_mean(name, OPS)}")
    return OPS[name]
