"""Run a scheduler on the toy worker and check, after every step, all that can be checked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from staticfire.engine.cache.hashing import ROOT_HASH, hash_block
from staticfire.engine.cache.spec import AttentionSpec, CacheLayout
from staticfire.engine.request import Request
from staticfire.engine.scheduler.output import SchedulerOutput
from staticfire.engine.scheduler.scheduler import Scheduler
from toy_engine.worker import ZERO_STATE, ToyError, ToyWorker, fold


@dataclass
class Engine:
    """Scheduler, worker and referee.

    Attributes:
        scheduler: Under test.
        worker: With or without planted faults.
        referee: Whether contents are compared with recomputation from the first token.
        steps: What was scheduled.
    """

    scheduler: Scheduler
    layout: CacheLayout
    worker: ToyWorker
    referee: bool = True
    steps: list[SchedulerOutput] = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)

    def add(self, *requests: Request) -> None:
        """Admit requests."""
        for request in requests:
            self.scheduler.add(request)
            self.requests[request.request_id] = request

    def step(self) -> list[Request]:
        """One step, checked."""
        output = self.scheduler.schedule()
        self.scheduler.check_integrity()
        check_step(output, self.scheduler, self.requests)
        answer = self.worker.execute(output)
        self.steps.append(output)
        if self.referee:
            self._check_pages(output)
        ended = self.scheduler.update(output, answer)
        self.scheduler.check_integrity()
        if self.referee:
            self._check_registered()
        return ended

    def run(self, *requests: Request, max_steps: int = 5000) -> dict[str, list[int]]:
        """Admit requests, run until nothing is left, and return the outputs of all requests so far."""
        self.add(*requests)
        for _ in range(max_steps):
            if not self.scheduler.has_unfinished():
                return {name: request.output_token_ids for name, request in self.requests.items()}
            self.step()
        raise ToyError(f"not finished after {max_steps} steps")

    def _check_pages(self, output: SchedulerOutput) -> None:
        for chunk in output.chunks:
            end = chunk.start + len(chunk.token_ids)
            tokens = self.requests[chunk.request_id].tokens(0, end)
            for block in chunk.state_blocks:
                self._expect_state(block, tokens, f"{chunk.request_id} at {end}")
            for group, table in zip(self.layout.groups, chunk.block_ids, strict=True):
                if isinstance(group.spec, AttentionSpec):
                    for index in range(-(-end // group.spec.block_size)):
                        self._expect_cells(table[index], tokens, index, group.spec.block_size)

    def _expect_state(self, block: int, tokens: Sequence[int], where: str) -> None:
        page = self.worker.pages[block]
        if isinstance(page, list) or page.value != fold(ZERO_STATE, tokens):
            raise ToyError(f"{where}: block {block} does not hold the state after {len(tokens)} tokens")

    def _expect_cells(self, block: int, tokens: Sequence[int], index: int, size: int) -> None:
        page = self.worker.pages[block]
        expected = [(p, tokens[p]) for p in range(index * size, min((index + 1) * size, len(tokens)))]
        if not isinstance(page, list) or page[: len(expected)] != expected:
            raise ToyError(f"block {block} does not hold tokens from {index * size} on")

    def _check_registered(self) -> None:
        """Every block in the prefix map holds exactly what its key stands for."""
        pool = self.scheduler.cache.pool
        prefixes = self._prefixes()
        for key, block in pool._registered.items():
            tokens, spec = prefixes[key.hash], self.layout.groups[key.group].spec
            if isinstance(spec, AttentionSpec):
                self._expect_cells(block, tokens, len(tokens) // spec.block_size - 1, spec.block_size)
            else:
                self._expect_state(block, tokens, f"registered in group {key.group}")

    def _prefixes(self) -> dict[bytes, list[int]]:
        size = self.layout.groups[0].spec.block_size
        prefixes: dict[bytes, list[int]] = {}
        for request in self.requests.values():
            parent, tokens = ROOT_HASH, request.tokens(0, request.num_tokens)
            for end in range(size, len(tokens) + 1, size):
                parent = hash_block(parent, tokens[end - size : end])
                prefixes[parent] = tokens[:end]
        return prefixes


def check_step(output: SchedulerOutput, scheduler: Scheduler, requests: dict[str, Request]) -> None:
    """The rules of one step that need no pages."""
    limits = scheduler.config.scheduler
    assert output.num_scheduled_tokens <= limits.max_num_batched_tokens
    assert len(output.chunks) <= limits.max_num_seqs
    ids = [chunk.request_id for chunk in output.chunks]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & set(output.preempted)
    if scheduler._running:
        assert scheduler._running[0].request_id in ids, "the first in order must advance in every step"
    for chunk in output.chunks:
        request = requests[chunk.request_id]
        end = chunk.start + len(chunk.token_ids)
        assert len(chunk.token_ids) > 0
        assert chunk.token_ids == request.tokens(chunk.start, end)
        assert chunk.samples == (end == request.num_tokens)
        assert chunk.hit_tokens in {0, chunk.start}
        assert chunk.start <= request.num_tokens - 1
    written = [copy.dst for copy in output.state_copies] + list(output.zero_blocks)
    assert len(set(written)) == len(written), "a block is prepared twice"
    assert not {copy.src for copy in output.state_copies} & set(written), "a copy reads what the step overwrites"


def make_engine(scheduler: Scheduler, layout: CacheLayout, vocab: int, skip: Iterable[str] = ()) -> Engine:
    """An engine with a worker that has the given faults."""
    return Engine(scheduler, layout, ToyWorker(layout, vocab, frozenset(skip)))
