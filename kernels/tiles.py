"""Tile sizes of matrix products, from shapes alone: nothing on the device has to be waited for. Imports no triton."""

from typing import NamedTuple


class ProductTiles(NamedTuple):
    """How a product [rows, inner] x [inner, columns] is cut.

    Attributes:
        rows: Rows of a program.
        columns: Columns of a program, of each of its results.
        inner: Channels of one step of a program.
        num_warps: Warps of a program.
        num_stages: Steps whose loads are under way at once.
    """

    rows: int
    columns: int
    inner: int
    num_warps: int
    num_stages: int


def product_tiles(rows: int, item: int, *, pair: bool, amd: bool, interpreted: bool) -> ProductTiles:
    """Choose the tiles of a product.

    Few rows mean that weights are what costs: narrow tiles, so that many programs read them. The limits are 64 KiB of
    shared memory on AMD's GPUs and 99 KiB on the smallest of NVIDIA's.

    Args:
        rows: Rows of a matrix, on average where several are multiplied at once.
        item: Bytes of an element of the left matrix.
        pair: Whether a program multiplies by two matrices, as a gated projection does.
        amd: Whether the device is AMD's.
        interpreted: Whether the launch is interpreted: tiles are then small, so that small inputs have several.

    Returns:
        The tiles.
    """
    if interpreted:
        return ProductTiles(16, 16, 16, 4, 1)
    if item > 2:
        return ProductTiles(16 if rows <= 16 else 32, 32, 32, 4, 2)
    if rows <= 16:
        return ProductTiles(16, 64, 64, 4, 2 if amd else 4)
    columns = 64 if pair else 128
    if rows <= 64:
        return ProductTiles(64, columns, 64, 4, 2 if amd else 3)
    return ProductTiles(128, columns, 64, 8, 2 if amd else 3)
