"""The harness's own error: what the user gave cannot be used. The command line turns it into exit code 2."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(Exception):
    """A file, name or option that cannot be used; the text says what, where, the value and what is allowed."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest of the known names, or nothing."""
    near = get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
