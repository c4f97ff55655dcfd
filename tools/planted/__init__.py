"""Faults planted in copies of the package, which the hybrid matrix must see."""
