"""The processes and sockets behind a client: started, and given back whatever becomes of it. Imports no torch."""

import time
from collections.abc import Collection
from typing import Final

import msgspec
import zmq

import staticfire
from staticfire.engine.client.coordinator import Coordinator
from staticfire.engine.client.limits import Limits
from staticfire.engine.client.link import Link, threads_of
from staticfire.engine.client.startup import OnProgress, Startup
from staticfire.engine.config.engine_config import ParallelConfig, ResolvedConfig
from staticfire.engine.process.child import Child
from staticfire.engine.process.coordinate import Posts
from staticfire.engine.process.folder import PrivateFolder
from staticfire.engine.process.kernels import kernel_environment
from staticfire.engine.process.owner import Owner
from staticfire.engine.process.serve import Launch
from staticfire.engine.process.sockets import make_socket
from staticfire.engine.wire.config import encode_config
from staticfire.engine.wire.messages import PROTOCOL, Init, Shutdown

ENTRY: Final = "staticfire.engine.process.serve:main"
"""What an engine process runs."""


class Processes:
    """What has to be given back.

    Attributes:
        context: Of all sockets here.
        folder: Of the ipc sockets.
        link: The engines; None before `start`.
        loads: Where the coordinator is heard; None without one.
        coordinator: If this front end started it.
        children: The engine processes.
        ready: Whether the engines take messages, so that they can be told to end.
    """

    def __init__(self, limits: Limits) -> None:
        self._owner = Owner()
        self._limits = limits
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.folder = PrivateFolder()
        self.link: Link | None = None
        self.loads: zmq.Socket[bytes] | None = None
        self.coordinator: Coordinator | None = None
        self.children: list[Child] = []
        self.ready = False

    def start(
        self, resolved: ResolvedConfig, eos_token_ids: Collection[int], on_progress: OnProgress | None, entry: str
    ) -> Startup:
        """Start every process; the engines have yet to get ready.

        Raises:
            EngineStartError: The coordinator cannot listen, or died.
        """
        parallel = resolved.parallel
        external = parallel.data_parallel_external_lb
        ranks = [parallel.data_parallel_rank or 0] if external else list(range(parallel.data_parallel_size))
        posts = self._posts(parallel)
        self.link = Link(self.context, self.folder.address("engines"))
        belongings = (str(self.folder.path),)
        if posts is not None and ranks[0] == 0:
            self.coordinator = Coordinator(posts, self._limits, belongings)
        for index in ranks:
            identity = self.link.new_identity()
            computes = parallel.tensor_parallel_size == 1
            launch = Launch(self.link.address, identity, index, self._limits.join_s, computes, str(self.folder.path))
            child = Child(
                f"engine core {index}",
                entry,
                msgspec.msgpack.encode(launch),
                environment={**threads_of(len(ranks)), **kernel_environment(resolved.kernel.backend)},
                belongings=belongings,
            )
            self.children.append(child)
            self.link.adopt(index, identity, child)
        init = Init(
            protocol=PROTOCOL,
            version=staticfire.__version__,
            config=encode_config(resolved),
            eos_token_ids=list(eos_token_ids),
            coordinator=None if posts is None else posts.join_address,
        )
        bystanders = [] if self.coordinator is None else [self.coordinator.child]
        return Startup(self.link, init, self._limits, bystanders, on_progress)

    def _posts(self, parallel: ParallelConfig) -> Posts | None:
        """Where a coordinator listens; None for one engine, which needs none."""
        size = parallel.data_parallel_size
        if size == 1:
            return None
        if parallel.data_parallel_external_lb:
            tcp = f"tcp://{parallel.data_parallel_address}"
            return Posts(f"{tcp}:{parallel.data_parallel_rpc_port}", f"{tcp}:*", size)
        return Posts(self.folder.address("join"), self.folder.address("stats"), size)

    def subscribe(self, address: str | None) -> None:
        """Hear the loads that are published at an address; None leaves it."""
        if address is not None:
            self.loads = make_socket(self.context, zmq.SUB)
            self.loads.setsockopt(zmq.SUBSCRIBE, b"")
            self.loads.connect(address)

    def end(self) -> None:
        """Tell every process to end, see to it, and remove the sockets."""
        if not self._owner.is_here():  # a fork has no say
            return
        if self.link is not None and self.ready:
            asked = [self.link.engines[index].child for index in self.link.alive()]
            for index in self.link.alive():
                self.link.send(index, Shutdown())
            deadline = time.monotonic() + self._limits.end_s
            for child in asked:
                child.exit_code(max(0.0, deadline - time.monotonic()))
        for child in [*self.children, *([self.coordinator.child] if self.coordinator is not None else [])]:
            child.stop()
        if self.link is not None:
            self.link.close()
        self.context.destroy(linger=0)
        self.folder.remove()
