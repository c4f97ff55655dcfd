"""No waiting for a model hub. It is never asked, so the pauses between an engine's tries to reach it gain nothing.

An engine's helpers that fetch a model's files try several times, seconds apart, and do so again for every question.
"""

import sys
import time
from typing import Any, Final

FETCHING: Final = ("vllm.transformers_utils", "huggingface_hub", "transformers")
"""Packages whose pauses are left out; everybody else sleeps as asked."""


def skip_pauses() -> None:
    """Make `time.sleep` return at once where code of `FETCHING` calls it."""
    sleep = time.sleep

    def asked(seconds: float) -> None:
        name = str(sys._getframe(1).f_globals.get("__name__", ""))  # noqa: SLF001 -- who calls is all that matters
        if not any(name == package or name.startswith(f"{package}.") for package in FETCHING):
            sleep(seconds)

    patched: Any = time
    patched.sleep = asked
