"""The reference engine's response: its own encoding, its own `settle`, in this process and without a worker."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from inspect import getsourcelines
from typing import Any, Final

from msgspec import MsgspecError, convert, msgpack
from msgspec.structs import asdict

from staticfire import __version__
from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.errors import EngineError
from staticfire.engine.ready.make import make_ready
from staticfire.engine.ready.response import TABLE, Merge, ReadyResponse, decode, encode
from staticfire.engine.ready.settle import Settled, settle
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.models.catalog import find
from staticfire.harness.sync.contract.agent.describe import fields as described
from staticfire.harness.sync.contract.agent.describe import plain
from staticfire.harness.sync.contract.base import About, Delivered, Field, Message, RoundTrip, Run, State
from staticfire.harness.sync.meaning import MEANING, misdeclared

MODEL: Final = "jamba-tiny-grow"
"""A worker changes both block sizes of this one."""
KEY: Final = "engine_index"
TYPED: Final[Mapping[str, tuple[str, ...]]] = {
    "runtime.block_size": ("cache.block_size",),
    "runtime.mamba_block_size": ("cache.mamba_block_size",),
    "runtime.num_gpu_blocks": ("cache.num_gpu_blocks_override",),
    "model.max_model_len": ("model.max_model_len", "scheduler.max_model_len"),
}
"""Where a value stands until an engine answers -> what the user typed for that."""
MOST_KNOWN: Final = 1000
Flatten = Callable[[str, Any], dict[str, Any]]
SECTIONS: Final = tuple(field.name for field in fields(EngineConfig))
KEPT: Final = {
    name: travels.source
    for name, travels in TABLE.items()
    if travels.merge is Merge.PER_ENGINE and travels.source is not None
}
"""Field that is each engine's own -> where the front end keeps it."""
POSITIVE: Final = {"is": "int", "least": 1, "most": 2**31}


class ReferenceSubject:
    """Our own engine.

    Attributes:
        about: What was found.
    """

    about: About

    def __init__(self) -> None:
        entry = find(MODEL)
        self._sections = _Sections()
        self._resolved = accept({"data_parallel_size": 2}, model_info(entry.hf, MODEL))
        base = asdict(make_ready(settle_worker(self._resolved), engine_index=0))
        shapes = {one["name"]: one["type"] for one in described(ReadyResponse)}
        wrong = misdeclared()
        self.about = About(
            engine=f"reference {__version__}",
            response=ReadyResponse.__name__,
            defined_at=f"engine/ready/response.py:{getsourcelines(ReadyResponse)[1]}",
            applies=settle.__name__,
            applied_at=f"engine/ready/settle.py:{getsourcelines(settle)[1]}",
            fields=tuple(Field(name, shape, plain(base[name])) for name, shape in shapes.items()),
            key=KEY,
            settable=dict.fromkeys(TYPED, POSITIVE),
            defaults={} if wrong else _state(self._silent(self._resolved), self._sections),
            misdeclared=wrong,
            meanings=MEANING,
        )

    def deliver(self, runs: Sequence[Run]) -> list[Delivered]:
        """See `Subject.deliver`."""
        return [self._deliver(run) for run in runs]

    def round_trip(self, message: Message) -> RoundTrip:
        """See `Subject.round_trip`."""
        try:
            sent = convert(message, ReadyResponse)
            got = decode(encode(sent))
        except (EngineError, MsgspecError) as error:
            return RoundTrip((), str(error))
        names = ReadyResponse.__struct_fields__
        return RoundTrip(tuple(name for name in names if getattr(sent, name) != getattr(got, name)), None)

    def close(self) -> None:
        """Nothing was started."""

    def _deliver(self, run: Run) -> Delivered:
        resolved = _typed(self._resolved, run.typed)
        states, answers = [_state(self._silent(resolved), self._sections)], []
        for message in run.messages:
            try:
                answers.append(decode(msgpack.encode(message)))
                states.append(_state(settle(resolved, answers), self._sections))
            except EngineError as error:
                return Delivered(tuple(states), f"{type(error).__name__}: {error}")
        return Delivered(tuple(states), None)

    @staticmethod
    def _silent(resolved: ResolvedConfig) -> Settled:
        """What the front end holds of an engine that says nothing."""
        return settle(resolved, [ReadyResponse(engine_index=0)])


def _typed(resolved: ResolvedConfig, typed: Mapping[str, Any]) -> ResolvedConfig:
    for where, value in typed.items():
        for path in TYPED[where]:
            section, _, name = path.partition(".")
            resolved = replace(resolved, **{section: replace(getattr(resolved, section), **{name: value})})
    return resolved


def _state(settled: Settled, flatten: Flatten) -> State:
    """Everything that the front end holds of plain values, and what it keeps of each engine."""
    found: dict[str, Any] = {}
    for section in SECTIONS:
        found |= flatten(section, getattr(settled.config, section))
    found["dp_stats_address"] = settled.dp_stats_address
    found["versions"] = plain(settled.versions)
    for name, path in KEPT.items():
        section, _, field = path.partition(".")
        found[f"each engine's {name}"] = {
            str(index): plain(getattr(getattr(one, section), field)) for index, one in settled.engines.items()
        }
    return found


class _Sections:
    """Sections as plain values; most are the same object from one example to the next."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def __call__(self, section: str, part: Any) -> dict[str, Any]:
        """`section.field` -> value."""
        known = self._known.get(id(part))
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            flat = {f"{section}.{one.name}": plain(getattr(part, one.name)) for one in fields(part)}
            flat.pop("model.info", None)
            known = self._known[id(part)] = (part, flat)  # holding the part keeps its id its own
        return known[1]
