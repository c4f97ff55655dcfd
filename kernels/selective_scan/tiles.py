"""How much of a sequence's state one program of the scan holds. Imports neither torch nor triton."""

from typing import NamedTuple


class Tile(NamedTuple):
    """Launch choices.

    Attributes:
        channels: Channels of a program, a power of two.
        states: States of a channel, padded to a power of two.
        warps: Warps of a program.
        stages: Tokens whose inputs are under way at once.
    """

    channels: int
    states: int
    warps: int
    stages: int


def choose(channels: int, states: int, item: int, *, step: bool) -> Tile:
    """Choose a tile.

    A prompt is a chain of tokens, each as long as its slowest warp: programs are as small as one warp can be filled
    with, so that no token waits for a barrier, and two tokens ahead are being loaded. A step only moves states.

    Args:
        channels: Channels of the layer.
        states: States of a channel.
        item: Bytes of an element of the computation.
        step: Whether every sequence has one token.

    Returns:
        The tile: for a prompt at most 1024 states a warp in float32, half of them in float64, which with their decays
        leaves registers to compute in.
    """
    padded = _power_of_two(states)
    if step:
        return Tile(min(max(2048 // padded, 16), 64, _power_of_two(channels)), padded, 4, 1)
    width = min(16 if padded <= 64 else 8, _power_of_two(channels))
    return Tile(width, padded, min(max(1, width * padded * item // 4096), 8), 3)


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
