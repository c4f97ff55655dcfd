"""What the process of one rank does: get ready, then compute what it is sent until nobody sends any more."""

import gc
from pathlib import Path

from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.errors import EngineError
from staticfire.engine.executor.base import Phase
from staticfire.engine.executor.messages import (
    Answer,
    AskView,
    Failed,
    Forget,
    Holds,
    Reached,
    Setup,
    Step,
    StepFailed,
    ToRank,
    decode,
    encode,
)
from staticfire.engine.executor.steps import StepReader
from staticfire.engine.parallel.gloo import GlooGroup
from staticfire.engine.process.frames import Channel
from staticfire.engine.view import flatten
from staticfire.engine.wire.config import decode_config, encode_config
from staticfire.engine.wire.faults import to_fault
from staticfire.engine.worker.worker import Worker


def main(payload: bytes, channel: Channel) -> int:
    """Be the rank that `payload` says. The process ends when the other end of the channel is closed."""
    try:
        channel.send(encode(Reached("imported")))
        try:
            _serve(decode(payload, Setup), channel)
        except EOFError:
            return 0
        except BaseException as error:  # noqa: BLE001 - whatever it is, the executor says it; this process has no user
            channel.send(encode(Failed(to_fault(error))))
        while True:  # the executor ends this process when it has heard all ranks
            channel.receive()
    except EOFError:
        return 0


def _serve(setup: Setup, channel: Channel) -> None:
    rank = _Rank(setup, channel)
    rank.get_ready()
    # What is there now stays: the collector need not walk through it again and again.
    gc.collect()
    gc.freeze()
    channel.send(encode(Reached("ready")))
    while True:
        rank.obey(channel.receive())


class _Rank:
    def __init__(self, setup: Setup, channel: Channel) -> None:
        self._setup = setup
        self._channel = channel
        self._steps = StepReader()

    def get_ready(self) -> None:
        setup = self._setup
        resolved: ResolvedConfig = decode_config(setup.config)
        group = GlooGroup(
            Path(setup.rendezvous),
            setup.rank,
            setup.size,
            join_limit_s=setup.join_limit_s,
            step_limit_s=setup.step_limit_s,
        )
        self._reached("joined")
        self._worker = Worker(resolved, group)
        self._worker.load()
        self._reached("loaded")
        self._channel.send(encode(Reached("aligned", encode_config(self._worker.align()))))
        self._worker.allocate()

    def _reached(self, phase: Phase) -> None:
        self._channel.send(encode(Reached(phase)))

    def obey(self, data: bytes) -> None:
        message = decode(data, ToRank)
        match message:
            case Step():
                self._channel.send(encode(self._step(message)))
            case Forget():
                self._worker.runner.forget()
            case AskView():
                self._channel.send(encode(Holds(flatten(self._worker.config))))

    def _step(self, message: Step) -> Answer | StepFailed:
        output = self._steps.read(message)
        try:
            answer = self._worker.runner.execute(output)
        except EngineError as error:
            return StepFailed(message.number, to_fault(error))
        return Answer(message.number, answer if self._setup.rank == 0 else None)
