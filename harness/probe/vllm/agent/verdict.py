"""Read an exception of the engine: does it refuse the configuration, or did something fail on this machine?"""

import re
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from .reasons import values
from .standin import ENGINE, engine_path

# Deliberate refusals; everything else (TypeError, AttributeError, KeyError, ImportError, OSError ...) is a failure.
REFUSALS = (ValueError, AssertionError, NotImplementedError, RuntimeError)
# What only says that this machine lacks a device, a driver, a compiler, a library or the network.
MACHINE = re.compile(
    r"no (?:cuda|hip|rocm)? ?gpus?\b|nvidia driver|not compiled with cuda|libcuda|libamdhip|no module named|"
    r"cannot open shared object|not (?:installed|importable)|please install|pip install|"
    r"c(?:ompiler| compiler|\+\+ compiler)\b.*not (?:found|available)|could not find .*compiler|"
    r"huggingface\.co|hf_hub_offline|offline mode|couldn't connect|connection (?:error|refused)|"
    r"no such file or directory|does not appear to have a file named|is not a local folder|invalid repository id|"
    r"\['?importerror|is not available on this|on this host\b|requires the [\w-]+ package|"
    r"needs? an? \w+\.json|available gpus|visible devices|failed to be inspected|stand_in",
    re.IGNORECASE,
)


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what led to it."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def place(error: BaseException) -> str | None:
    """Where in the engine's code an exception arises, as `vllm/path.py:line`; None outside it."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = engine_path(frame.f_code.co_filename)
        if path is not None:
            found = f"{path}:{line}"
    return found


def innermost(error: BaseException) -> str:
    """The file in which an exception was raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return frames[-1][0].f_code.co_filename if frames else ""


def read(error: BaseException, phase: str, typed: Iterable[str] = ()) -> dict[str, Any]:
    """Judge an exception.

    Args:
        error: What building the configuration raised.
        phase: `front end` or `worker`.
        typed: The keywords of the question: only one of them can be an unexpected keyword of the user's.

    Returns:
        The fields of a `rejected` or `crashed` answer.
    """
    details = getattr(error, "errors", None)
    if type(error).__name__ == "ValidationError" and callable(details):
        return _validation(error, details(), phase, typed)
    message = str(error) or type(error).__name__
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", message)
    if isinstance(error, TypeError) and unexpected and unexpected[1] in typed:
        return rejected("field", message, place(error) or f"{ENGINE}/engine/arg_utils.py", phase)
    for one in chain(error):
        if MACHINE.search(str(one)) or isinstance(one, (ImportError, OSError)):
            return crashed(error)
    origin = place(error)
    deliberate = isinstance(error, REFUSALS) and type(error).__module__ in ("builtins", "pydantic_core._pydantic_core")
    if origin is None or not (deliberate or type(error).__module__.startswith(ENGINE)):
        return crashed(error)
    if engine_path(innermost(error)) is None:
        return crashed(error)
    return refused(error, phase, typed)


def refused(error: BaseException, phase: str, typed: Iterable[str] = ()) -> dict[str, Any]:
    """An answer: what the engine raised refuses the configuration."""
    message = str(error) or type(error).__name__
    return rejected("rule", message, place(error) or innermost(error), phase, values(error, typed))


def _validation(
    error: BaseException, details: list[dict[str, Any]], phase: str, typed: Iterable[str]
) -> dict[str, Any]:
    """A pydantic error: faults of fields, and rules that pydantic caught on their way out."""
    messages, kinds, origins = [], set(), []
    about: list[dict[str, Any]] = []
    for detail in details:
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, BaseException):
            if MACHINE.search(str(cause)):
                return crashed(cause)
            messages.append(str(cause) or type(cause).__name__)
            kinds.add("rule")
            origins.append(place(cause))
            about += [one for one in values(cause, typed) if one not in about]
        else:
            where = ".".join(str(part) for part in detail.get("loc", ()))
            messages.append(f"{where}: {detail['msg']}" if where else str(detail["msg"]))
            kinds.add("field")
    origin = next((origin for origin in origins if origin), None) or place(error) or "pydantic"
    kind = "rule" if "rule" in kinds else "field"
    return rejected(kind, "; ".join(dict.fromkeys(messages)), origin, phase, about)


def rejected(
    kind: str, message: str, origin: str, phase: str, about: "Iterable[dict[str, Any]]" = ()
) -> dict[str, Any]:
    """An answer: the engine refuses, for the sake of some values."""
    said = {"outcome": "rejected", "kind": kind, "message": message.strip(), "origin": origin, "phase": phase}
    return {**said, "values": list(about)}


def crashed(error: BaseException) -> dict[str, Any]:
    """An answer: no verdict, and why."""
    where = place(error) or innermost(error)
    first = (str(error).strip() or "no message").splitlines()[0]
    return {"outcome": "crashed", "detail": f"{type(error).__name__}: {first[:500]} ({where})"}
