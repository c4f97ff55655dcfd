"""A name that does not exist, and the one that was probably meant. Imports no torch."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, to end a message with, or nothing: names that begin so are nearer than others."""
    names = list(known)
    begun = [one for one in names if name and one.startswith(name)]
    near = get_close_matches(name, begun, n=1, cutoff=0) if begun else get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
