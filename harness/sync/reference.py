"""A live audit of the reference engine: started as asked, looked at from every side, stopped."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from staticfire import __version__
from staticfire.engine.config.engine_config import CacheConfig, Runtime
from staticfire.engine.llm import LLM
from staticfire.engine.ready.response import STAYS, TABLE
from staticfire.harness.models.checkpoint import checkpoint
from staticfire.harness.start.service import Service
from staticfire.harness.sync.base import Finding, Road, Seen
from staticfire.harness.sync.meaning import NAMES, misdeclared
from staticfire.harness.sync.scrape import fetch, metrics_views

SECTIONS: Final = {
    "runtime": tuple(field.name for field in fields(Runtime)),
    "cache": tuple(field.name for field in fields(CacheConfig)),
}
"""What the metrics show; where both have a name the run-time value stands there."""


def roads() -> dict[str, Road]:
    """`section.field` -> how it travels, from the engine's own table of the ready response."""
    return {
        target: Road(NAMES[travels.merge], f"ready response, field {name}: {travels.merge.value}")
        for name, travels in TABLE.items()
        for target in travels.targets
    }


def wrong_merges() -> tuple[Finding, ...]:
    """Fields whose declared merge is not what the merged value means."""
    return tuple(
        Finding(
            "differs",
            (*TABLE[name].targets, name)[0],
            f"{name}: the front end merges by {declared!r}, and the value means {meant!r}",
            travels=f"ready response, field {name}: {TABLE[name].merge.value}",
        )
        for name, (declared, meant) in misdeclared().items()
    )


class ReferenceEngine:
    """Our own engine."""

    name = "reference"

    def look(self, model: str, typed: Mapping[str, Any]) -> Seen:
        """Start it, collect everyone's views, stop it.

        Args:
            model: A tiny model's name, or a folder with a checkpoint.
            typed: Engine keywords.

        Raises:
            EngineError, InputError: It cannot run here, or refuses the configuration.
        """
        if wrong := wrong_merges():  # no start would show more than what such a merge makes of it
            note = "the engine was not started: what its ready response declares is wrong"
            return Seen(f"reference {__version__}", [], {}, notes=(note,), misdeclared=wrong)
        with Service(0, "127.0.0.1") as service, LLM(checkpoint(model), **typed) as llm:
            client = llm.client
            service.watch(client)
            shown = metrics_views(fetch(f"{service.url}/metrics"), SECTIONS)
            return Seen(
                engine=f"reference {__version__}",
                views=[*client.views(), *shown],
                roads=roads(),
                stays=STAYS,
                unreported=client.unreported,
            )
