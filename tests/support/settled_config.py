"""Configurations as a worker settles them."""

from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.models import catalog


def settled_config(model: str = "jamba-tiny", **typed: object) -> EngineConfig:
    """A model of the catalogue with keywords as a user types them, after a worker's start-up."""
    found = catalog.find(model)
    return settle_worker(accept(typed, model_info(found.hf, found.name)))
