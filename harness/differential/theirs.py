"""The answer of an installed engine to a drawn case, read from what its probe says."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from staticfire.harness.differential.base import Answer, Case, Opinion
from staticfire.harness.differential.ours import POOL
from staticfire.harness.probe.base import EngineProbe, NotKnown, Outcome, Question, Rejected, Settled, parts_of

NAMES: Final = {"quantization.method": "model.quantization"}
"""Our name of a value -> the engine's, where they differ."""
BOUND: Final = "blocks_at_most"


class Theirs:
    """Answers of an engine."""

    def __init__(self, probe: EngineProbe, folders: Mapping[str, str]) -> None:
        """Ask through a probe.

        Args:
            probe: Of the engine.
            folders: Name of a model -> the folder with its configuration.
        """
        self._probe = probe
        self._folders = folders

    def answers(self, cases: Sequence[Case]) -> list[Answer]:
        """Judge cases; the answers are in their order."""
        asked = [Question(self._folders[case.model], case.typed) for case in cases]
        return [read(outcome, case) for outcome, case in zip(self._probe.answer(asked), cases, strict=True)]


def read(outcome: Outcome, case: Case) -> Answer:
    """Put what a probe says into the form that is compared."""
    parts = parts_of(outcome)
    configuration = _opinion(parts.front_end)
    if configuration.verdict == "accepted":
        configuration = _opinion(parts.worker)
    values = _values(parts.front_end)
    late = {
        f"runtime.{name.removeprefix('cache.')}": value
        for name, value in _values(parts.worker).items()
        if name.startswith("cache.")
    }
    blocks = _values(parts.capacity).get(BOUND)
    sized = {"num_gpu_blocks_override", "kv_cache_memory_bytes"} & set(case.typed)
    if isinstance(blocks, int) and sized:
        late[POOL] = blocks
    bounds = {POOL: blocks} if isinstance(blocks, int) and not sized else {}
    capacity = _capacity(_opinion(parts.capacity), sized=bool(sized))
    for ours, theirs in NAMES.items():
        if theirs in values:
            values[ours] = values[theirs]
    return Answer(configuration, capacity, {**values, **late}, bounds=bounds)


def _values(part: Settled | Rejected | NotKnown) -> dict[str, Any]:
    return dict(part.values) if isinstance(part, Settled) else {}


def _capacity(said: Opinion, *, sized: bool) -> Opinion:
    """An acceptance holds for what was typed; a pool that the device sizes has a largest size alone."""
    if said.verdict != "accepted":
        return said
    if not sized:
        return Opinion("not known", "the blocks are counted as if the weights weighed nothing")
    return Opinion("accepted", blind="no weights are weighed without a device")


def _opinion(part: Settled | Rejected | NotKnown) -> Opinion:
    if isinstance(part, Settled):
        return Opinion("accepted")
    if isinstance(part, NotKnown):
        return Opinion("not known", part.because)
    if part.doubt:
        return Opinion("not known", part.doubt)
    return Opinion("refused", part.origin, part.message)
