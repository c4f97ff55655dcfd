"""The engines that can be asked. A new one is one file and one line here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from staticfire.engine.config.device import Device
from staticfire.harness.errors import InputError, nearest
from staticfire.harness.probe.base import EngineProbe


@dataclass(frozen=True, slots=True)
class Options:
    """How to open a probe.

    Attributes:
        device: The device to judge for.
        python: The interpreter that has the engine; None for the current one.
        use_cache: Whether answers on disk are used and kept.
        processes: Most engine processes at a time.
        question_limit: Seconds to wait for one answer.
        source: A tree with the engine's sources, in place of what the interpreter has installed.
        identify_limit: Seconds to wait for the interpreter to say what it has.
        say: Told what is waited for, when that takes long.
    """

    device: Device
    python: str | None = None
    use_cache: bool = True
    processes: int = 2
    question_limit: float = 60
    source: Path | None = None
    identify_limit: float = 20
    say: Callable[[str], None] = lambda _: None


def _reference(options: Options) -> EngineProbe:
    from staticfire.harness.probe.reference import ReferenceProbe  # noqa: PLC0415 -- opened by name

    return ReferenceProbe(options.device)


def _vllm(options: Options) -> EngineProbe:
    import sys  # noqa: PLC0415

    from staticfire.harness.probe.vllm.probe import VllmProbe  # noqa: PLC0415 -- the same
    from staticfire.harness.probe.vllm.process import Limits  # noqa: PLC0415

    return VllmProbe(
        options.python or sys.executable,
        options.device,
        use_cache=options.use_cache,
        processes=options.processes,
        limits=Limits(question=options.question_limit),
        source=options.source,
        identify_limit=options.identify_limit,
        say=options.say,
    )


ENGINES: Final[dict[str, Callable[[Options], EngineProbe]]] = {"reference": _reference, "vllm": _vllm}


def open_probe(engine: str, options: Options) -> EngineProbe:
    """Open the probe of an engine.

    Args:
        engine: A name of `ENGINES`.
        options: For which device, and how.

    Raises:
        InputError: Unknown name, or the engine is not there.
    """
    if engine not in ENGINES:
        raise InputError(f"No engine named {engine!r}.{nearest(engine, ENGINES)} Engines: {', '.join(ENGINES)}.")
    return ENGINES[engine](options)
