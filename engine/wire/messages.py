"""Every message, with who says it to whom. Imports no torch.

The order of a start: the engine says `Hello`, the front end answers `Init`, the engine reports `Progress` and ends
with `Ready` or `Dead`. With a data-parallel coordinator the engine sends it a `Join` in between and waits for
`Joined`. Then `Add`, `Abort` and `AskViews` go one way, `Outputs`, `Failed` and `Views` the other, until `Shutdown`.

`Hello`, `Join` and `Refused` are read by peers of every protocol: their tags and first fields never change.
"""

import msgspec

from staticfire.engine.exchange import FinishedRequest
from staticfire.engine.ready.response import ReadyResponse
from staticfire.engine.stats import EngineStats
from staticfire.engine.view import View

PROTOCOL = 1
"""Raised whenever a peer of the number before would misread a message."""


class Fault(msgspec.Struct, frozen=True):
    """An exception, as another process raises it again.

    Attributes:
        kind: Name of its class.
        message: Its text.
        trace: Where it was raised, for one that nobody foresaw.
    """

    kind: str
    message: str
    trace: str = ""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Engine to front end: here I am."""

    protocol: int
    version: str
    pid: int
    engine_index: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """To a peer that cannot be worked with: why."""

    reason: str


class Init(msgspec.Struct, frozen=True, tag="init"):
    """Front end to engine: what to become.

    Attributes:
        protocol: Of the front end.
        version: Its package version.
        config: The resolved configuration, by `wire.config`.
        eos_token_ids: Tokens that end a request.
        coordinator: Where the data-parallel coordinator takes `Join`s; None without one.
    """

    protocol: int
    version: str
    config: bytes
    eos_token_ids: list[int]
    coordinator: str | None = None


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Engine to front end: its start has come that far.

    Attributes:
        phase: What has been done.
        rank: Of which worker; None for the engine core itself.
        pid: Of the process meant.
    """

    phase: str
    rank: int | None
    pid: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Engine to front end: it takes requests, and this is what was settled at run time."""

    response: ReadyResponse


class Dead(msgspec.Struct, frozen=True, tag="dead"):
    """Engine to front end: it ends now, and why."""

    fault: Fault


class AddedRequest(msgspec.Struct, frozen=True):
    """A new request. Its parameters are JSON, for their integers may be larger than msgpack's.

    Its number is the front end's and never comes twice, where an id may be used again after an abort.
    """

    number: int
    request_id: str
    prompt_token_ids: list[int]
    sampling_params: bytes


class Add(msgspec.Struct, frozen=True, tag="add"):
    """Front end to engine: serve these, all or none."""

    requests: list[AddedRequest]


class Abort(msgspec.Struct, frozen=True, tag="abort"):
    """Front end to engine: end these now; `report` says whether what they have is wanted."""

    numbers: list[int]
    report: bool


class Outputs(msgspec.Struct, frozen=True, tag="outputs"):
    """Engine to front end: what has ended since the last one, by number, and how the engine stands."""

    finished: list[tuple[int, FinishedRequest]]
    stats: EngineStats


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Engine to front end: something was refused or a step failed; these requests are gone, the engine goes on."""

    fault: Fault
    numbers: list[int]


class AskViews(msgspec.Struct, frozen=True, tag="ask-views"):
    """Front end to engine: tell the configuration as your processes have it."""

    number: int


class Views(msgspec.Struct, frozen=True, tag="views"):
    """Engine to front end: the answer to the question of that number."""

    number: int
    views: list[View]


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """Front end to engine or coordinator: end."""


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Engine to coordinator: count me in."""

    protocol: int
    version: str
    engine_index: int
    data_parallel_size: int


class Joined(msgspec.Struct, frozen=True, tag="joined"):
    """Coordinator to engine: where front ends hear how loaded the engines are (`dp_stats_address`)."""

    stats_address: str


class Load(msgspec.Struct, frozen=True):
    """How many requests an engine has."""

    running: int
    waiting: int


class Counts(msgspec.Struct, frozen=True, tag="counts"):
    """Engine to coordinator, whenever it changes."""

    engine_index: int
    load: Load


class Loads(msgspec.Struct, frozen=True, tag="loads"):
    """Coordinator to every front end: all engines that have joined, by index."""

    loads: dict[int, Load]


class Bound(msgspec.Struct, frozen=True, tag="bound"):
    """Coordinator to the front end that started it: where it takes `Join`s and `Counts`, and where it publishes."""

    join_address: str
    stats_address: str


ToEngine = Init | Refused | Add | Abort | AskViews | Shutdown
FromEngine = Hello | Progress | Ready | Dead | Outputs | Failed | Views
ToCoordinator = Join | Counts
FromCoordinator = Joined | Refused
Message = ToEngine | FromEngine | ToCoordinator | FromCoordinator | Loads | Bound
