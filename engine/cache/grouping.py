"""How layers of unlike specs are cut into groups of equal size. Imports nothing of the engine."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Spec = TypeVar("Spec", bound=Hashable)


def group_size(bucket_sizes: Sequence[int]) -> int:
    """Return how many layers share one block table.

    The smallest bucket sets the size, so that few groups carry padding; where the largest bucket is less than half
    as big again, it does, and the smaller ones are padded (vLLM V1, `kv_cache_utils`).

    Args:
        bucket_sizes: Layers of each spec, every number positive.
    """
    smallest, largest = min(bucket_sizes), max(bucket_sizes)
    return largest if 2 * largest < 3 * smallest else smallest


def group_layers(buckets: Mapping[Spec, Sequence[int]]) -> list[tuple[Spec, tuple[int, ...]]]:
    """Cut each bucket into groups of `group_size` layers; the last group of a bucket may be shorter (padded).

    Args:
        buckets: Spec -> its layers in model order; empty buckets are left out.

    Returns:
        (spec, layers) of every group, in bucket order.
    """
    filled = {spec: layers for spec, layers in buckets.items() if layers}
    size = group_size([len(layers) for layers in filled.values()])
    return [
        (spec, tuple(layers[start : start + size]))
        for spec, layers in filled.items()
        for start in range(0, len(layers), size)
    ]
