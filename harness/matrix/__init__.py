"""Load, expand and verify matrices of configurations. `load(path_or_name)` is the way in."""

from staticfire.harness.matrix.matrix import Matrix, load, names

__all__ = ["Matrix", "load", "names"]
