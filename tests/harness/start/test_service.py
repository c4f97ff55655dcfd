"""Looking after engines: their deaths are told once and shown, and scrapes never touch them."""

import urllib.error
import urllib.request
from typing import Any

import pytest

from staticfire.engine.config import accept, model_info
from staticfire.engine.errors import EngineError
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.models import catalog
from staticfire.harness.start.service import Service


class Engines:
    """Two engines that die when told to."""

    def __init__(self) -> None:
        info = model_info(catalog.find("jamba-tiny-grow").hf, "jamba-tiny-grow")
        self.engine_configs = dict.fromkeys((0, 1), settle_worker(accept({}, info)))
        self.gone: dict[int, str] = {}

    def stats(self) -> dict[int, Any]:
        return {}

    def dead(self) -> dict[int, str]:
        return self.gone


def health(service: Service) -> int:
    try:
        with urllib.request.urlopen(f"{service.url}/health", timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def page(service: Service) -> str:
    with urllib.request.urlopen(f"{service.url}/metrics", timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def test_a_death_is_told_once_and_shown_from_then_on():
    engines = Engines()
    with Service(0, "127.0.0.1") as service:
        assert health(service) == 503  # nothing is ready yet
        service.watch(engines)
        assert (health(service), service.alive, service.look()) == (200, 2, {})
        assert 'staticfire:num_requests_running{engine="1",model_name="jamba-tiny-grow"} 0.0' in page(service)
        engines.gone = {1: "killed by SIGKILL"}
        assert health(service) == 200  # nobody has looked
        assert service.look() == {1: "killed by SIGKILL"}
        assert service.look() == {}
        assert (health(service), service.alive) == (503, 1)
        engines.gone = {0: "exit 1", 1: "killed by SIGKILL"}
        assert service.look() == {0: "exit 1"}
        assert service.alive == 0


def test_nothing_can_be_looked_at_before_there_are_engines():
    with Service(0, "127.0.0.1") as service, pytest.raises(EngineError, match="no engines"):
        service.look()
