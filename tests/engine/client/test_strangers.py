"""Garbage, truncated, foreign and huge messages to every socket: refused, and the engines go on."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec
import pytest
import zmq

import staticfire
import toy_core
from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.process.child import Child
from staticfire.engine.process.folder import PrivateFolder
from staticfire.engine.process.serve import Launch
from staticfire.engine.process.sockets import bind, make_socket
from staticfire.engine.wire import codec
from staticfire.engine.wire.config import encode_config
from staticfire.engine.wire.messages import (
    PROTOCOL,
    Abort,
    Add,
    Counts,
    Failed,
    FromEngine,
    Hello,
    Init,
    Join,
    Load,
    Outputs,
    Progress,
    Ready,
    Shutdown,
)
from toy_core import SLOW, ask, continuation, finish

pytestmark = pytest.mark.timeout(120)

HUGE = 100_000_000
WAIT_MS = 20_000
GOOD = codec.encode(Hello(PROTOCOL, staticfire.__version__, 1, 0))
GARBAGE = {
    "nothing": [b""],
    "noise": [bytes(range(256))],
    "no MessagePack": [b"\xc1"],
    "cut short": [GOOD[:-3]],
    "deeply nested": [b"\x91" * 100_000 + b"\xc0"],
    "of an unknown kind": [msgspec.msgpack.encode({"type": "nothing"})],
    "several parts": [GOOD, GOOD],
    "no part": [b"", b"", b""],
    "a hello": [GOOD],
    "huge": [bytes(HUGE)],
}


@contextmanager
def stranger(address: str, kind: int = zmq.DEALER) -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(kind) as made:
        made.setsockopt(zmq.LINGER, 2_000)
        made.setsockopt(zmq.SNDTIMEO, 5_000)
        made.connect(address)
        yield made


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessClient]:
    with closing(toy_core.client(data_parallel_size=2)) as client:
        yield client


def it_serves(client: ProcessClient) -> None:
    client.add([ask(str(n), [n, SLOW]) for n in range(4)])
    finished = finish(client, [str(n) for n in range(4)])
    assert {name: done.token_ids for name, done in finished.items()} == {
        str(n): continuation([n, SLOW], 5) for n in range(4)
    }
    assert client.dead() == {}
    assert client.coordinator is not None
    assert client.coordinator.child.exit_code() is None


@pytest.mark.parametrize("garbage", GARBAGE)
def test_to_the_front_end(two: ProcessClient, garbage: str):
    before = two.link.turned_away
    with stranger(two.link.address) as socket:
        socket.send_multipart(GARBAGE[garbage])
        it_serves(two)
        if garbage == "huge":
            assert two.link.turned_away == before, "it was never taken in"
        else:
            deadline = time.monotonic() + 20
            while two.link.turned_away == before:
                assert time.monotonic() < deadline
                two.stats()
            assert socket.poll(WAIT_MS)
            assert b"started no such engine" in socket.recv()
    it_serves(two)


def test_a_stranger_with_an_engines_identity_is_turned_away(two: ProcessClient):
    identity = two.link._identities[0]
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IDENTITY, identity)
        socket.connect(two.link.address)
        socket.send(b"\xc1")
        it_serves(two)


@pytest.mark.parametrize("garbage", GARBAGE)
def test_to_the_coordinator(two: ProcessClient, garbage: str):
    assert two.coordinator is not None
    with stranger(two.coordinator.join_address) as socket:
        socket.send_multipart(GARBAGE[garbage])
        if garbage != "huge":
            assert socket.poll(WAIT_MS)
            assert b"refused" in socket.recv()
        it_serves(two)


def test_counts_of_a_stranger_do_not_count(two: ProcessClient):
    assert two.coordinator is not None
    with stranger(two.coordinator.join_address) as socket:
        socket.send(codec.encode(Counts(0, Load(1000, 1000))))
        socket.send(codec.encode(Join(PROTOCOL + 1, "9", 0, 2)))
        assert b"protocol" in socket.recv()
        it_serves(two)
        assert two._balancer.loads[0].waiting < 1000


@pytest.mark.parametrize("garbage", GARBAGE)
def test_to_where_loads_are_published(two: ProcessClient, garbage: str):
    assert two.dp_stats_address is not None
    with stranger(two.dp_stats_address, zmq.XSUB) as socket:
        for part in GARBAGE[garbage]:
            socket.send(part)
        it_serves(two)


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(5_000), b"\xff" + bytes(8) + b"\x7f"])
def test_what_is_not_even_zmq(two: ProcessClient, data: bytes):
    assert two.coordinator is not None
    assert two.dp_stats_address is not None
    for address in (two.link.address, two.coordinator.join_address, two.dp_stats_address):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(address.removeprefix("ipc://"))
            raw.sendall(data)
            it_serves(two)


class Puppeteer:
    """A front end written by hand, and one toy engine."""

    def __init__(self) -> None:
        self.folder = PrivateFolder()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = make_socket(self.context, zmq.ROUTER)
        self.identity = b"e1"
        address = bind(self.socket, self.folder.address("engines"))
        launch = msgspec.msgpack.encode(Launch(address, self.identity, 0, 1.0, False, str(self.folder.path)))
        self.child = Child("engine core 0", "toy_core:main", launch, belongings=[str(self.folder.path)])

    def send(self, *parts: bytes) -> None:
        self.socket.send_multipart([self.identity, *parts])

    def receive(self) -> FromEngine:
        assert self.socket.poll(WAIT_MS)
        _, data = self.socket.recv_multipart()
        return codec.from_engine(data)

    def until(self, *kinds: type) -> FromEngine:
        while not isinstance(message := self.receive(), kinds):
            pass
        return message

    def close(self) -> None:
        self.child.kill()
        self.context.destroy(linger=0)
        self.folder.remove()


@pytest.fixture
def puppeteer() -> Iterator[Puppeteer]:
    with closing(Puppeteer()) as made:
        yield made


def init(protocol: int = PROTOCOL, version: str = staticfire.__version__) -> bytes:
    return codec.encode(Init(protocol, version, encode_config(toy_core.resolved()), [], None))


def test_to_an_engine(puppeteer: Puppeteer):
    """Before it is told what to be, after, and while it computes."""
    assert isinstance(puppeteer.receive(), Hello)
    bad = [parts for parts in GARBAGE.values() if len(parts) == 1]
    for parts in bad:
        puppeteer.send(*parts)
        assert isinstance(puppeteer.until(Failed), Failed)
    puppeteer.send(init())
    assert isinstance(puppeteer.until(Ready), Ready)
    for parts in [*bad, [init()]]:
        added = [codec.pack_request(1, ask("a", [SLOW, 4], 10))]
        puppeteer.send(codec.encode(Add(added)))
        puppeteer.send(*parts)
        seen: set[type] = set()
        while seen != {Failed, Outputs}:
            message = puppeteer.until(Failed, Outputs)
            if isinstance(message, Failed):
                assert (message.fault.kind, message.numbers) == ("WireError", [])
                seen.add(Failed)
            elif isinstance(message, Outputs) and message.finished:
                assert message.finished[0][1].token_ids == continuation([SLOW, 4], 10)
                seen.add(Outputs)
    puppeteer.send(codec.encode(Shutdown()))
    assert puppeteer.child.exit_code(20) == 0


def test_an_engine_refuses_a_front_end_of_another_protocol(puppeteer: Puppeteer):
    from staticfire.engine.wire.messages import Dead

    puppeteer.until(Hello)
    puppeteer.send(init(PROTOCOL + 1, "9.9"))
    dead = puppeteer.until(Dead)
    assert isinstance(dead, Dead)
    assert dead.fault.kind == "EngineStartError"
    assert f"speaks protocol {PROTOCOL} (staticfire {staticfire.__version__})" in dead.fault.message
    assert f"front end protocol {PROTOCOL + 1} (staticfire 9.9)" in dead.fault.message
    assert puppeteer.child.exit_code(20) == 1


def test_requests_that_an_engine_refuses_are_named_by_number(puppeteer: Puppeteer):
    puppeteer.until(Hello)
    puppeteer.send(init())
    puppeteer.until(Ready)
    good = codec.pack_request(7, ask("a", [1]))
    for requests in (
        [good, codec.pack_request(8, ask("b", []))],
        [good, msgspec.structs.replace(good, number=8, request_id="b", sampling_params=b"{")],
    ):
        puppeteer.send(codec.encode(Add(requests)))
        failed = puppeteer.until(Failed)
        assert isinstance(failed, Failed)
        assert failed.numbers == [7, 8]
    puppeteer.send(codec.encode(Abort([7, 99], report=True)))
    puppeteer.send(codec.encode(Add([good])))
    while not (isinstance(message := puppeteer.until(Outputs), Outputs) and message.finished):
        pass
    assert message.finished[0][0] == 7


def test_progress_names_the_process(puppeteer: Puppeteer):
    progress = puppeteer.until(Progress)
    assert isinstance(progress, Progress)
    assert (progress.pid, progress.rank) == (puppeteer.child.pid, None)
