"""Tile sizes of the kernel, from shapes alone: nothing on the device has to be waited for."""

from typing import NamedTuple

SHARE = 256
"""Least positions that are worth a program of their own and a row of the merge."""


class Tiles(NamedTuple):
    """How one launch is cut.

    Attributes:
        rows: Query rows of a program, each a token and a query head of one group; a power of two, at least 16.
        positions: Keys and values of one step of a program.
        splits: Programs that share the positions of one tile of queries.
        num_warps: Warps of a program.
        num_stages: Steps whose loads are under way at once.
    """

    rows: int
    positions: int
    splits: int
    num_warps: int
    num_stages: int


class Launch(NamedTuple):
    """What the tiles depend on.

    Attributes:
        tokens: Queries, T.
        sequences: B.
        key_heads: Hk.
        group: Query heads that a key head serves.
        head_size: d.
        item: Bytes of an element of `q`.
        capacity: Positions that a block table covers.
        units: Multiprocessors of the device.
        amd: Whether it is AMD's, whose shared memory holds 64 KiB.
        interpreted: Whether the launch is interpreted: tiles are then small, so that small inputs have several.
    """

    tokens: int
    sequences: int
    key_heads: int
    group: int
    head_size: int
    item: int
    capacity: int
    units: int = 1
    amd: bool = False
    interpreted: bool = False


def choose(launch: Launch) -> Tiles:
    """Choose the tiles of a launch.

    With at most one query a sequence, the cache is what costs: few rows a program, and where the batch alone does not
    fill the device, programs that share the positions of a sequence. With more, products are what costs: many rows.
    The splits make the order of a sum, and so its last bits, depend on the size of the batch.

    Args:
        launch: Its shapes and device.

    Returns:
        The tiles.
    """
    least = max(16, 1 << (launch.group - 1).bit_length())
    decode = launch.tokens <= launch.sequences
    if launch.interpreted:
        return Tiles(least, 16, 2 if decode else 1, 4, 1)
    wide = launch.head_size * launch.item
    if decode:
        programs = 2 * launch.sequences * launch.key_heads
        splits = max(1, min(4 * launch.units // programs, launch.capacity // SHARE, 16))
        return Tiles(least, 64 if wide <= 256 else 32, splits, 4, 2 if launch.amd or wide > 256 else 3)
    if launch.item > 2 or wide > 512:
        return Tiles(max(32, least), 32, 1, 4, 1 if launch.amd else 2)
    warps = 4 if launch.amd else 8
    if wide > 256:
        return Tiles(max(64, least), 32, 1, warps, 1 if launch.amd else 2)
    # The masks of a padded head size take registers that 128 rows of it do not leave.
    padded = wide > 128 and launch.head_size.bit_count() > 1
    return Tiles(max(64 if padded else 128, least), 64, 1, warps, 1 if launch.amd else 3)
