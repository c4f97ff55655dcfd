"""How a process ended, in words."""

import signal


def describe_exit(code: int | None) -> str:
    """`killed by SIGKILL`, `exit code 3`, or `still running` for None."""
    if code is None:
        return "still running"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
