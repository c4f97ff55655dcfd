"""Continuous batching: who computes how many tokens in the next step. Imports no torch.

Running requests stand in policy order. A step serves them from the first on, then admits waiting ones in the same
order. Where blocks run out, the last running request loses its own (preemption by recompute) until there are
enough. Since requests are served front to back and preempted back to front, one that is already part of the step is
never preempted in it.

Every accepted request finishes: the first running request is served in every step with the whole budget before it,
may preempt all others, and fits the pool alone (`admission`); so it advances, ends, and makes room for the next.
"""

from bisect import insort
from collections.abc import Collection

from staticfire.engine.cache.coordinator import Hit
from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.manager import CacheManager
from staticfire.engine.cache.spec import CacheLayout
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.errors import RequestError
from staticfire.engine.request import Request, RequestStatus
from staticfire.engine.scheduler.admission import check_request
from staticfire.engine.scheduler.chunking import Chunking
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput, StepOutput
from staticfire.engine.scheduler.policy import POLICIES, WaitingQueue
from staticfire.engine.scheduler.stopping import accept_token
from staticfire.engine.stats import Counters, EngineStats


class Scheduler:
    """Alternate `schedule()` and `update()`; between the two the worker computes the step.

    Args:
        config: The engine's configuration.
        layout: Its cache groups, from `plan_cache`.
        eos_token_ids: Tokens that end a request unless it ignores them.
        counters: Where everything is counted; may outlive the scheduler.
    """

    def __init__(
        self,
        config: EngineConfig,
        layout: CacheLayout,
        eos_token_ids: Collection[int] = (),
        counters: Counters | None = None,
    ) -> None:
        self.config = config
        self.counters = Counters() if counters is None else counters
        self.cache = CacheManager(config, layout)
        self._chunking = Chunking.of(config, layout)
        self._order = POLICIES[config.scheduler.policy]
        self._max_num_seqs = config.scheduler.max_num_seqs
        self._max_model_len = config.scheduler.max_model_len
        self._eos_token_ids = frozenset(eos_token_ids)
        self._requests: dict[str, Request] = {}
        self._running: list[Request] = []
        self._waiting = WaitingQueue(self._order)
        self._finished: list[str] = []
        self._step = 0
        self._in_flight: SchedulerOutput | None = None

    @property
    def num_running(self) -> int:
        """Requests that hold blocks."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Requests that hold none: new and preempted ones."""
        return len(self._waiting)

    def stats(self) -> EngineStats:
        """What was counted so far, and how things stand."""
        pool = self.cache.pool
        return self.counters.snapshot(
            num_running=self.num_running,
            num_waiting=self.num_waiting,
            kv_cache_usage=1 - pool.num_free / pool.num_usable,
        )

    def has_unfinished(self) -> bool:
        """Whether any request has tokens to come."""
        return bool(self._requests)

    def add(self, request: Request) -> None:
        """Accept a request.

        Raises:
            RequestError: Its id is in use, or it could never finish (all reasons, in numbers).
        """
        if request.request_id in self._requests:
            raise RequestError(f"request {request.request_id!r}: the id is in use by an unfinished request")
        check_request(request, self.config, self.cache)
        request.arrived_at = self.counters.now()
        self._requests[request.request_id] = request
        self._waiting.push(request)

    def abort(self, request_id: str) -> bool:
        """End a request now; one that is part of the step in flight keeps its blocks until `update`.

        Returns:
            Whether there was such a request.
        """
        request = self._requests.get(request_id)
        if request is None or request.status.finished:
            return False
        was_running = request.status is RequestStatus.RUNNING
        request.status = RequestStatus.FINISHED_ABORTED
        self.counters.finished(request, self.counters.now())
        if self._in_flight is not None and any(c.request_id == request_id for c in self._in_flight.chunks):
            return True
        if was_running:
            self._running.remove(request)
            self.cache.free(request_id)
        else:
            self._waiting.remove(request)
        self._forget(request)
        return True

    def schedule(self) -> SchedulerOutput:
        """Decide the next step; empty only if nothing is unfinished.

        Raises:
            RuntimeError: The last step has not been given to `update`, or nothing can advance (a fault of ours).
        """
        if self._in_flight is not None:
            raise RuntimeError(f"step {self._in_flight.step} is still in flight: call update() first")
        chunks: list[ScheduledChunk] = []
        preempted: list[str] = []
        budget = self._serve_running(self._chunking.max_tokens, chunks, preempted)
        if not preempted and self._waiting:
            self._admit_waiting(budget, chunks)
        if not chunks and self._requests:
            raise RuntimeError(
                f"nothing can advance: {len(self._running)} running, {len(self._waiting)} waiting, "
                f"{self.cache.pool.num_free} of {self.cache.pool.num_usable} blocks free"
            )
        effects = self.cache.take_effects()
        output = SchedulerOutput(
            step=self._step,
            chunks=tuple(chunks),
            state_copies=tuple(effects.state_copies),
            zero_blocks=tuple(effects.zero_blocks),
            preempted=tuple(preempted),
            finished=tuple(self._finished),
        )
        self._finished.clear()
        self._step += 1
        self._in_flight = output
        return output

    def _serve_running(self, budget: int, chunks: list[ScheduledChunk], preempted: list[str]) -> int:
        running, index = self._running, 0
        while index < len(running) and budget > 0:
            request = running[index]
            index += 1
            start = request.num_computed_tokens
            length = self._chunking.length(request, start, budget, request.junction)
            if length == 0:
                continue
            while not self.cache.extend(request, start + length):
                victim = running.pop()
                self._preempt(victim)
                preempted.append(victim.request_id)
                if victim is request:
                    return budget
            chunks.append(self._chunk(request, start, length, hit_tokens=0))
            budget -= length
        return budget

    def _admit_waiting(self, budget: int, chunks: list[ScheduledChunk]) -> None:
        while self._waiting and budget > 0 and len(self._running) < self._max_num_seqs:
            request = self._waiting.first()
            hit = self.cache.lookup(request)
            start = hit.num_tokens
            length = self._chunking.length(request, start, budget, hit.junction)
            if length == 0 or not self.cache.admit(request, hit, start + length):
                return
            self._waiting.pop()
            insort(self._running, request, key=self._order)
            self._start(request, hit)
            chunks.append(self._chunk(request, start, length, hit_tokens=start))
            budget -= length

    def _start(self, request: Request, hit: Hit) -> None:
        request.status = RequestStatus.RUNNING
        request.num_computed_tokens = hit.num_tokens
        request.junction = hit.junction
        if request.num_cached_tokens < 0:
            request.num_cached_tokens = hit.num_tokens
            if self.cache.reads(request):
                self.counters.looked_up(request.num_tokens, hit.num_tokens)

    def _preempt(self, request: Request) -> None:
        self.cache.free(request.request_id)
        request.status = RequestStatus.PREEMPTED
        request.num_computed_tokens = 0
        request.num_preemptions += 1
        self.counters.num_preemptions += 1
        self._waiting.push(request)

    def _chunk(self, request: Request, start: int, length: int, hit_tokens: int) -> ScheduledChunk:
        # Lengths are taken here, once: properties cost as much as all the rest, and this runs for every token.
        held = self.cache.blocks(request.request_id)
        end, prompt, outputs = start + length, len(request.prompt_token_ids), request.output_token_ids
        if hit_tokens and held.state_blocks:
            request.num_restored_states += 1
        request.chunks.append((start, length))
        return ScheduledChunk(
            request_id=request.request_id,
            token_ids=outputs[start - prompt : end - prompt] if start >= prompt else request.tokens(start, end),
            start=start,
            block_ids=held.tables,
            state_blocks=held.state_blocks,
            samples=end == prompt + len(outputs),
            sampling_params=request.sampling_params,
            num_prompt_tokens=prompt,
            hit_tokens=hit_tokens,
        )

    def update(self, output: SchedulerOutput, step: StepOutput) -> list[Request]:
        """Take the results of the step in flight.

        Args:
            output: What `schedule` returned last.
            step: What the worker made of it; aborted requests may be missing in it.

        Returns:
            Requests that ended, in batch order; aborted ones are not among them.

        Raises:
            RuntimeError: `output` is not the step in flight, or `step` lacks a token it samples; nothing has changed.
        """
        if output is not self._in_flight:
            raise RuntimeError(f"step {output.step} is not in flight")
        self._check_answer(output, step)
        self._in_flight = None
        now = self.counters.now()
        ended = []
        for chunk in output.chunks:
            request = self._requests[chunk.request_id]
            aborted = request.status is not RequestStatus.RUNNING
            if not aborted:
                self._advance(request, chunk, step, now)
                if request.status is RequestStatus.RUNNING:
                    continue
            if request.status.finished:
                self._running.remove(request)
                self.cache.free(request.request_id)
                self._forget(request)
                if not aborted:
                    self.counters.finished(request, now)
                    ended.append(request)
        return ended

    def _check_answer(self, output: SchedulerOutput, step: StepOutput) -> None:
        unanswered = [c.request_id for c in output.chunks if c.samples and c.request_id not in step.sampled]
        missing = [request_id for request_id in unanswered if not self._requests[request_id].status.finished]
        if missing:
            raise RuntimeError(f"step {output.step} came back with no token for {missing}")

    def _advance(self, request: Request, chunk: ScheduledChunk, step: StepOutput, now: float) -> None:
        request.num_computed_tokens = chunk.start + len(chunk.token_ids)
        self.cache.commit(request)
        if chunk.samples:
            token = step.sampled[request.request_id]
            accept_token(request, token, self._eos_token_ids, self._max_model_len)
            self.counters.token(request, now)

    def _forget(self, request: Request) -> None:
        del self._requests[request.request_id]
        self._finished.append(request.request_id)

    def check_integrity(self) -> None:
        """Recount requests, tables and blocks.

        Raises:
            CacheCorruptionError: With the first contradiction found.
        """
        running = {request.request_id: request for request in self._running}
        waiting = {request.request_id for request in self._waiting.requests()}
        if running.keys() | waiting != self._requests.keys() or running.keys() & waiting:
            raise CacheCorruptionError(
                f"running {sorted(running)} and waiting {sorted(waiting)} do not add up to {sorted(self._requests)}"
            )
        if any(request.num_computed_tokens for request in self._waiting.requests()):
            raise CacheCorruptionError("a waiting request has computed tokens")
        if sorted(self._running, key=self._order) != self._running:
            raise CacheCorruptionError(f"running requests are out of order: {list(running)}")
        self.cache.check_integrity(running)
