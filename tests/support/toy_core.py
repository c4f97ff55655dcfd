"""An engine process without torch: the real scheduler and the real process around workers that only count.

The next token is a plain function of the tokens so far. A prompt may hold orders, tokens from 400 on, obeyed when
the request that holds them is computed for the first time.
"""

import os
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import psutil

from staticfire.engine.client.limits import Limits
from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.config.reader import model_info
from staticfire.engine.config.resolver import resolve
from staticfire.engine.errors import CheckpointError, EngineDeadError, EngineError
from staticfire.engine.exchange import FinishedRequest, NewRequest
from staticfire.engine.process import serve
from staticfire.engine.process.frames import Channel
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.view import View, flatten
from staticfire.engine.wire.messages import Progress
from staticfire.engine.worker.settle import settle_worker

FAIL, DIE, SLEEP, BUG, LOSE_WORKERS, SLOW = range(400, 406)
"""Raise an EngineError; kill this process; take two seconds; raise a KeyError; workers die; 20 ms a step."""

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
    "torch_dtype": "float32",
}


def resolved(**typed: Any) -> ResolvedConfig:
    """A resolved configuration of the toy model."""
    config = resolve({"num_gpu_blocks_override": 200, **typed}, model_info(LLAMA, "toy")).config
    assert config is not None
    return config


def next_token(tokens: Sequence[int]) -> int:
    """What the toy model says after these tokens."""
    return (31 * sum(tokens) + 7 * len(tokens)) % 400


def continuation(prompt: Sequence[int], number: int) -> list[int]:
    """What it says next, `number` times over."""
    tokens = list(prompt)
    for _ in range(number):
        tokens.append(next_token(tokens))
    return tokens[len(prompt) :]


class ToyExecutor:
    """Counts."""

    def __init__(
        self, resolved: ResolvedConfig, *, engine_index: int = 0, observer: Any = None, progress: Any = None,
        folder: str | None = None,
    ) -> None:  # fmt: skip
        if resolved.model.seed == 1:
            raise CheckpointError("the toy is broken")
        if resolved.model.seed == 2:
            raise KeyError("nobody foresaw this")
        if resolved.model.seed == 3:
            time.sleep(600)
        if resolved.model.seed == 5 and engine_index == 1:
            time.sleep(20)
        self.config = settle_worker(resolved)
        if resolved.model.seed == 4 and engine_index == 1:
            self.config = replace(self.config, runtime=replace(self.config.runtime, num_gpu_blocks=50))
        self._engine_index = engine_index
        self._tokens: dict[str, list[int]] = {}

    def execute(self, output: SchedulerOutput) -> StepOutput:
        sampled = {}
        for chunk in output.chunks:
            known = self._tokens.setdefault(chunk.request_id, []) if chunk.start else []
            self._tokens[chunk.request_id] = known = [*known[: chunk.start], *chunk.token_ids]
            if chunk.start == 0:
                _obey(known)
            if SLOW in known:
                time.sleep(0.02)
            if chunk.samples:
                sampled[chunk.request_id] = next_token(known)
        return StepOutput(sampled, {}, {})

    def forget(self) -> None:
        self._tokens = {}

    def views(self) -> list[View]:
        return [View(role="worker", engine=self._engine_index, rank=0, fields=flatten(self.config))]

    def check(self) -> None:
        if self.config.model.seed == 5:
            raise EngineDeadError("worker 0.1 (pid 5): killed by SIGKILL", who="worker 0.1")

    def close(self) -> None:
        pass


def _obey(tokens: list[int]) -> None:
    if FAIL in tokens:
        raise EngineError("ordered to fail")
    if BUG in tokens:
        raise KeyError("a bug")
    if LOSE_WORKERS in tokens:
        raise EngineDeadError("worker 0.1 (pid 5): killed by SIGKILL", who="worker 0.1")
    if DIE in tokens:
        os.kill(os.getpid(), signal.SIGKILL)
    if SLEEP in tokens:
        time.sleep(2.0)


def main(payload: bytes, channel: Channel) -> int:
    """Be an engine core with toy workers."""
    patch("staticfire.engine.core.make_executor", ToyExecutor).start()
    patch("staticfire.engine.process.serve.import_module").start()
    return serve.main(payload, channel)


def other_protocol(payload: bytes, channel: Channel) -> int:
    """The same of another protocol and version."""
    patch("staticfire.engine.process.serve.PROTOCOL", 77).start()
    return other_version(payload, channel)


def other_protocol_to_the_coordinator(payload: bytes, channel: Channel) -> int:
    """Speak of another protocol when it joins, but not before."""
    real = serve._Server._join

    def join(server: Any, address: str, size: int) -> str:
        patch("staticfire.engine.process.serve.PROTOCOL", 77).start()
        patch("staticfire.__version__", "77.0").start()
        return real(server, address, size)

    patch("staticfire.engine.process.serve._Server._join", join).start()
    return main(payload, channel)


def other_version(payload: bytes, channel: Channel) -> int:
    """The same of another version."""
    patch("staticfire.__version__", "77.0").start()
    return main(payload, channel)


def silent(payload: bytes, channel: Channel) -> None:
    """Never say a word."""
    time.sleep(600)


def babble(payload: bytes, channel: Channel) -> int:
    """Answer a request with what is no message."""

    def add(server: Any, _core: Any, _requests: Any) -> None:
        server._socket.send(b"\xc1 no message")

    patch("staticfire.engine.process.serve._Server._add", add).start()
    return main(payload, channel)


def client(entry: str = "main", limits: Limits | None = None, on_progress: Any = None, **typed: Any) -> ProcessClient:
    """A client whose engines are toys."""
    config = resolved(**{"enable_multiprocessing": True, **typed})
    return ProcessClient(config, limits=limits, on_progress=on_progress, entry=f"toy_core:{entry}")


def ask(request_id: str, prompt: Sequence[int], max_tokens: int = 5) -> NewRequest:
    """A request."""
    return NewRequest(request_id, list(prompt), SamplingParams(max_tokens=max_tokens, ignore_eos=True))


def finish(client: ProcessClient, wanted: Collection[str], limit_s: float = 30.0) -> Mapping[str, FinishedRequest]:
    """Step until the wanted requests have ended."""
    finished: dict[str, FinishedRequest] = {}
    deadline = time.monotonic() + limit_s
    while set(wanted) - finished.keys():
        assert time.monotonic() < deadline, f"only {sorted(finished)} of {sorted(wanted)}"
        finished |= {request.request_id: request for request in client.step()}
    return finished


def family(pid: int | None = None) -> set[psutil.Process]:
    """All processes below one, those that have ended but were not waited for left out."""
    below = psutil.Process(pid).children(recursive=True)
    return {process for process in below if alive(process)}


def alive(process: psutil.Process) -> bool:
    """Whether it runs: neither gone nor a zombie."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def all_end(processes: Collection[psutil.Process], limit_s: float = 20.0) -> bool:
    """Whether all of them end in time."""
    deadline = time.monotonic() + limit_s
    while any(map(alive, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def named(*words: str) -> list[psutil.Process]:
    """Processes of this machine that have all of these words in their command lines, and run."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if all(word in line for word in words) and process.pid != os.getpid() and alive(process):
            found.append(process)
    return found


def front_end() -> None:
    """Be a front end of two engines that kills itself: at a phase of the start, or while generating."""
    phase, how = sys.argv[1], signal.Signals[sys.argv[2]]

    def hear(engine: int, progress: Progress) -> None:
        if (engine, progress.phase) == (1, phase):
            os.kill(os.getpid(), how)

    made = client(on_progress=hear, data_parallel_size=2)
    made.add([ask(str(number), [SLOW, number], 900) for number in range(8)])
    made.step()
    if phase == "freezing":
        for engine in made.link.engines.values():
            os.kill(engine.child.pid, signal.SIGSTOP)
    os.kill(os.getpid(), how)
    while True:
        made.step()


if __name__ == "__main__":
    front_end()
