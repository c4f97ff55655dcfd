"""Every guard by the name that `--sf-guards` takes."""

from collections.abc import Callable
from typing import Final

import pytest

from staticfire.harness.plugin.guards.assertions import AssertionsGuard
from staticfire.harness.plugin.guards.collection import CollectionGuard
from staticfire.harness.plugin.guards.cuda import CudaGuard
from staticfire.harness.plugin.guards.ids import IdsGuard
from staticfire.harness.plugin.guards.leaks import LeaksGuard
from staticfire.harness.plugin.guards.skips import SkipsGuard

REGISTRY: Final[dict[str, Callable[[pytest.Config], object]]] = {
    "assertions": AssertionsGuard,
    "collection": CollectionGuard,
    "cuda": CudaGuard,
    "ids": IdsGuard,
    "leaks": LeaksGuard,
    "skips": SkipsGuard,
}


def register(config: pytest.Config, names: tuple[str, ...]) -> None:
    """Turn guards on."""
    for name in names:
        config.pluginmanager.register(REGISTRY[name](config), f"staticfire-guard-{name}")
