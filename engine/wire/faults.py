"""Exceptions that cross a process boundary. Imports no torch."""

import traceback

from staticfire.engine import errors
from staticfire.engine.wire.messages import Fault

KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        errors.EngineError,
        errors.CheckpointError,
        errors.RequestError,
        errors.WireError,
        errors.EngineStartError,
        errors.EngineDeadError,
        MemoryError,
    )
}
"""Those that are raised again as what they were."""


def to_fault(error: BaseException) -> Fault:
    """Describe an exception; one that nobody foresaw takes its traceback along."""
    kind = type(error).__name__
    trace = "" if kind in KINDS else "".join(traceback.format_exception(error))
    return Fault(kind, _text(str(error)), _text(trace))


def to_error(fault: Fault, fallback: type[Exception] = errors.EngineError) -> Exception:
    """The exception to raise here: of the same kind, or a `fallback` that names the kind and has the trace as a note.

    Args:
        fault: What came.
        fallback: Raised for kinds that are not ours.
    """
    kind = KINDS.get(fault.kind)
    if kind is not None:
        return kind(fault.message)
    error = fallback(f"{fault.kind}: {fault.message}" if fault.message else fault.kind)
    if fault.trace:
        error.add_note(f"In the engine's process:\n{fault.trace}")
    return error


def _text(text: str) -> str:
    """Without what has no bytes, such as half a surrogate pair in a user's id."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
