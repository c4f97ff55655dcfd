"""The engines that a check can ask. A new one is one module and one line in `ENGINES`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from staticfire.harness.check.question import Engine

ENGINES: Final[Mapping[str, str]] = {
    "vllm": "staticfire.harness.check.vllm_engine:VllmEngine",
    "reference": "staticfire.harness.check.reference_engine:ReferenceEngine",
}
"""Name for `--engine` -> `module:class`, imported when it is asked for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which engine to ask, and how.

    Attributes:
        device: Name of a device.
        python: Interpreter that has the engine; None for the current one.
        model_configs: Folder of model configurations.
        suite: Paths that are checked: a suite may say itself what the models are that it names.
        processes: Probe processes.
        cache: Whether answers are kept on disk and used again.
        source: A tree with the engine's sources, in place of what the interpreter has installed.
        wait: Seconds to wait for the interpreter to say what it has.
        say: Told what is waited for, when that takes long.
    """

    device: str
    python: str | None = None
    model_configs: Path | None = None
    suite: tuple[Path, ...] = ()
    processes: int = 2
    cache: bool = True
    source: Path | None = None
    wait: float = 20
    say: Callable[[str], None] = lambda _: None


def open_engine(name: str, asked: Asked) -> Engine:
    """Open an engine.

    Raises:
        InputError: There is none to ask, or no such device.
    """
    module, _, attribute = ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(module), attribute)(asked)
    return engine
