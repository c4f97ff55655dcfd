"""Start engines as asked and look after them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from staticfire.engine.config import model_info, resolve
from staticfire.engine.llm import LLM
from staticfire.engine.view import View
from staticfire.harness.models import catalog
from staticfire.harness.models.checkpoint import checkpoint
from staticfire.harness.start.service import Service
from staticfire.harness.start.table import Row, rows

LOOK_SECONDS: Final = 0.2
"""How often the engines are looked at: the age of a metric, and how soon a death is told."""


@dataclass(frozen=True, slots=True)
class Started:
    """Engines that are ready and shown.

    Attributes:
        service: Their metrics.
        rows: What became of every value.
        views: What every holder has.
        engines: How many there are.
    """

    service: Service
    rows: tuple[Row, ...]
    views: Callable[[], list[View]]
    engines: int


@contextmanager
def started(model: str, typed: Mapping[str, Any], port: int, host: str) -> Iterator[Started]:
    """Start the engines and their metrics server; both end with the block.

    Args:
        model: A tiny model's name, or a folder with a checkpoint.
        typed: Engine keywords.
        port: TCP port of the metrics; 0 finds a free one.
        host: Address to listen on.

    Raises:
        EngineError, InputError: The address is in use, the model is unknown, the configuration is refused, an engine
            does not start.
    """
    with Service(port, host) as service, LLM(checkpoint(model), **typed) as llm:
        service.watch(llm.client)
        resolution = resolve(typed, model_info(catalog.find(model).hf, model))
        engines = llm.client.engine_configs
        yield Started(service, rows(typed, resolution.values, engines), llm.client.views, len(engines))


def watch(service: Service, tell: Callable[[int, str], None], wait: Callable[[float], bool]) -> bool:
    """Look after the engines until it is enough or none is left.

    Args:
        service: What shows them.
        tell: Called once for every engine that dies, with its index and why.
        wait: Waits so many seconds; says whether it is enough.

    Returns:
        Whether any engine lives.
    """
    while service.alive:
        if wait(LOOK_SECONDS):
            return True
        for index, why in service.look().items():
            tell(index, why)
    return False
