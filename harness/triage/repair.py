"""The smallest change that makes the engine accept a cell that it refused, each one tried."""

from collections.abc import Iterator, Mapping
from typing import Any

from staticfire.harness.check.base import Change, Repair, spell
from staticfire.harness.errors import InputError
from staticfire.harness.matrix import load
from staticfire.harness.probe.base import Accepted
from staticfire.harness.probe.reference import ReferenceProbe
from staticfire.harness.triage.base import Failure
from staticfire.harness.triage.commands import rerun


def of_cell(failure: Failure, usual: Mapping[str, Any]) -> str:
    """What mends a cell, in words; empty where its matrix is not at hand or no single change is enough.

    Args:
        failure: Of a cell; the command that runs it again names its matrix.
        usual: What mends the rule's own example: keyword -> value, None to drop it. Tried first.
    """
    ours = rerun(failure.rerun)
    if not failure.cell or ours is None:
        return ""
    try:
        cell = load(ours.matrix).cell(failure.id)
    except InputError:
        return ""
    probe = ReferenceProbe()
    if isinstance(probe.ask(cell.model, cell.config), Accepted):
        return ""
    for repair in _candidates(cell.config, usual):
        if isinstance(probe.ask(cell.model, _changed(cell.config, repair)), Accepted):
            return spell(repair)
    return ""


def _candidates(config: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[Repair]:
    """The usual change, then each typed value flipped, then each left out."""
    if usual:
        yield tuple(Change(name, value, drop=value is None) for name, value in usual.items())
    yield from ((Change(name, not value),) for name, value in config.items() if isinstance(value, bool))
    yield from ((Change(name, drop=True),) for name in config)


def _changed(config: Mapping[str, Any], repair: Repair) -> dict[str, Any]:
    dropped = {change.keyword for change in repair if change.drop}
    typed = {change.keyword: change.value for change in repair if not change.drop}
    return {**{name: value for name, value in config.items() if name not in dropped}, **typed}
