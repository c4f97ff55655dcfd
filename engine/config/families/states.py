"""Shapes of the recurrent state of one layer of one rank, as plain arithmetic.

Each class is a callable (tensor_parallel_size, num_speculative_tokens) -> state tensors. Division is exact where
the parallel rules hold; where they do not the shape is rounded up, and a rule refuses the configuration.
"""

from dataclasses import dataclass

from staticfire.engine.config.model import StateShape


def _share(total: int, ranks: int) -> int:
    return -(-total // ranks)


@dataclass(frozen=True, slots=True)
class Mamba1State:
    """Mamba-1: conv (I/TP, K-1) and ssm (I/TP, N). Speculative tokens do not widen the conv state."""

    intermediate: int
    d_state: int
    d_conv: int

    def __call__(self, tp: int, spec: int) -> tuple[StateShape, ...]:  # noqa: ARG002 -- see the class
        """Shapes of one rank."""
        channels = _share(self.intermediate, tp)
        return (
            StateShape("conv", (channels, self.d_conv - 1)),
            StateShape("ssm", (channels, self.d_state)),
        )


@dataclass(frozen=True, slots=True)
class Mamba2State:
    """Mamba-2: conv ((I + 2 G' N)/TP, K-1+spec) and ssm (H/TP, P, N).

    G' is the number of groups after replication: with one group every rank keeps a copy.
    """

    intermediate: int
    groups: int
    heads: int
    head_dim: int
    d_state: int
    d_conv: int

    def __call__(self, tp: int, spec: int) -> tuple[StateShape, ...]:
        """Shapes of one rank."""
        groups = self.groups if self.groups % tp == 0 else max(self.groups, tp)
        return (
            StateShape("conv", (_share(self.intermediate + 2 * groups * self.d_state, tp), self.d_conv - 1 + spec)),
            StateShape("ssm", (_share(self.heads, tp), self.head_dim, self.d_state)),
        )


@dataclass(frozen=True, slots=True)
class GatedDeltaNetState:
    """Gated delta net: conv ((2 kd nk + vd nv)/TP, K-1+spec) and recurrent state (nv/TP, vd, kd)."""

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    d_conv: int

    def __call__(self, tp: int, spec: int) -> tuple[StateShape, ...]:
        """Shapes of one rank."""
        channels = 2 * self.key_head_dim * self.key_heads + self.value_head_dim * self.value_heads
        return (
            StateShape("conv", (_share(channels, tp), self.d_conv - 1 + spec)),
            StateShape("ssm", (_share(self.value_heads, tp), self.value_head_dim, self.key_head_dim)),
        )
