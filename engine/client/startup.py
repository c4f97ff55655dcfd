"""From spawned processes to engines that are ready: hello, init, progress, ready. Imports no torch."""

import time
from collections.abc import Callable, Collection

import staticfire
from staticfire.engine.client.limits import Limits
from staticfire.engine.client.link import Engine, Link, describe_end
from staticfire.engine.errors import EngineDeadError, EngineStartError
from staticfire.engine.process.child import Child
from staticfire.engine.ready.response import ReadyResponse
from staticfire.engine.wire import codec
from staticfire.engine.wire.faults import to_error
from staticfire.engine.wire.messages import PROTOCOL, Dead, FromEngine, Hello, Init, Outputs, Progress, Ready, Refused

OnProgress = Callable[[int, Progress], None]
"""Told (engine index, how far it is). The phases `started` and `said hello` are the front end's own words."""


class Startup:
    """Waits for the engines of a link.

    Args:
        link: With the engines adopted.
        init: What each engine is sent.
        limits: How long each phase may take.
        bystanders: Further processes whose death ends the start.
        on_progress: Told how far each engine is.

    Attributes:
        early: How the engines stood when they became ready.
    """

    def __init__(
        self, link: Link, init: Init, limits: Limits, bystanders: Collection[Child], on_progress: OnProgress | None
    ) -> None:
        self._link = link
        self._init = codec.encode(init)
        self._limits = limits
        self._bystanders = bystanders
        self._on_progress = on_progress
        self._responses: dict[int, ReadyResponse] = {}
        now = time.monotonic()
        self._deadlines = dict.fromkeys(link.engines, now + limits.hello_s)
        self._greeted: set[int] = set()
        self.early: list[tuple[Engine, FromEngine]] = []

    def run(self) -> list[ReadyResponse]:
        """The answers of all engines.

        Raises:
            EngineStartError: An engine died, took too long or speaks another protocol; says in which phase.
            EngineError: What an engine itself says is wrong, such as a `CheckpointError`.
        """
        for engine in self._link.engines.values():
            self._tell(engine, Progress("started", None, engine.child.pid))
        while len(self._responses) < len(self._link.engines):
            self._check_bystanders()
            waiting = [engine for index, engine in self._link.engines.items() if index not in self._responses]
            late = min(waiting, key=lambda engine: self._deadlines[engine.index])
            left = self._deadlines[late.index] - time.monotonic()
            if left <= 0:
                raise EngineStartError(self._describe_delay(late))
            # Bystanders are looked after at least once a second.
            for event in self._link.wait(min(left, 1.0)):
                if event.message is None:
                    raise EngineStartError(f"{event.why_dead}\n{_where(event.engine)}")
                self._take(event.engine, event.message)
        self._check_bystanders()
        return list(self._responses.values())

    def _take(self, engine: Engine, message: FromEngine) -> None:
        match message:
            case Hello() if engine.index not in self._greeted:
                self._greet(engine, message)
            case Progress():
                engine.said = message.phase if message.rank is None else f"{message.phase} (rank {message.rank})"
                self._tell(engine, message)
            case Ready(response=response) if engine.index in self._greeted:
                if response.engine_index != engine.index:
                    raise EngineStartError(f"{engine.child.name} answers as engine {response.engine_index}")
                self._responses[engine.index] = response
                self._tell(engine, Progress("answered", None, engine.child.pid))
            case Outputs() if engine.index in self._greeted:
                self.early.append((engine, message))
            case Dead(fault=fault):
                error = to_error(fault, EngineStartError)
                if isinstance(error, EngineDeadError):  # a worker that had got ready, while others had not
                    error = EngineStartError(str(error))
                error.add_note(f"{engine.child.name}: {_where(engine)}")
                raise error
            case _:
                raise EngineStartError(
                    f"{engine.child.name} (pid {engine.child.pid}) sent a {type(message).__name__} out of turn. "
                    f"{_where(engine)}"
                )

    def _greet(self, engine: Engine, hello: Hello) -> None:
        if hello.protocol != PROTOCOL:
            reason = (
                f"{engine.child.name} speaks protocol {hello.protocol} (staticfire {hello.version}), this front end "
                f"protocol {PROTOCOL} (staticfire {staticfire.__version__})"
            )
            self._link.send(engine.index, Refused(reason))
            raise EngineStartError(f"{reason}: was the package replaced while this process ran?")
        if hello.engine_index != engine.index:
            raise EngineStartError(f"{engine.child.name} says it is engine {hello.engine_index}")
        self._greeted.add(engine.index)
        self._deadlines[engine.index] = time.monotonic() + self._limits.ready_s
        engine.said = "said hello"
        self._tell(engine, Progress("said hello", None, hello.pid))
        self._link.send_encoded(engine.index, self._init)

    def _tell(self, engine: Engine, progress: Progress) -> None:
        if self._on_progress is not None:
            self._on_progress(engine.index, progress)

    def _check_bystanders(self) -> None:
        for child in self._bystanders:
            if child.exit_code() is not None:
                raise EngineStartError(f"{describe_end(child)}\nEngines were starting.")

    def _describe_delay(self, engine: Engine) -> str:
        greeted = engine.index in self._greeted
        limit = self._limits.ready_s if greeted else self._limits.hello_s
        wanted = "get ready" if greeted else "say hello"
        tail = engine.child.tail()
        return f"{engine.child.name} (pid {engine.child.pid}) did not {wanted} within {limit:g} s. {_where(engine)}" + (
            f"\nIt printed last:\n{tail}" if tail else ""
        )


def _where(engine: Engine) -> str:
    return f"How far its start had come: {engine.said}."
