"""The engine core: scheduler and worker, stepped until every request has ended.

The front end (`llm.py`) talks to it in plain values only: `NewRequest`s and ids in, `FinishedRequest`s out. A process
boundary can therefore be put between the two without touching either.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.errors import EngineDeadError, EngineError
from staticfire.engine.exchange import FinishedRequest, FinishReason, NewRequest
from staticfire.engine.executor.base import Progress
from staticfire.engine.executor.registry import make_executor
from staticfire.engine.observer import Observer
from staticfire.engine.outputs import RequestStats
from staticfire.engine.request import Request, RequestStatus
from staticfire.engine.scheduler.admission import admit, check_request
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput, TokenLogprobs
from staticfire.engine.scheduler.scheduler import Scheduler
from staticfire.engine.stats import Counters, EngineStats
from staticfire.engine.view import View, flatten

if TYPE_CHECKING:
    from staticfire.engine.worker.runner import ModelRunner

REASONS: dict[RequestStatus, FinishReason] = {
    RequestStatus.FINISHED_STOPPED: "stop",
    RequestStatus.FINISHED_LENGTH: "length",
    RequestStatus.FINISHED_ABORTED: "abort",
}
"""Final status -> what the user is told."""


@dataclass(slots=True)
class _Live:
    """A request and what was collected for it."""

    request: Request
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs | None] = field(default_factory=list)


class EngineCore:
    """Owns the scheduler and, through an executor, the workers."""

    def __init__(
        self,
        resolved: ResolvedConfig,
        eos_token_ids: Collection[int] = (),
        observer: Observer | None = None,
        *,
        engine_index: int = 0,
        progress: Progress | None = None,
        folder: str | None = None,
    ) -> None:
        """Load the model, map the caches.

        Args:
            resolved: What the front end resolved; each worker settles its own copy.
            eos_token_ids: Tokens that end a request unless it ignores them.
            observer: Watches every step.
            engine_index: Which of the data-parallel engines this is.
            progress: Told how far each rank is.
            folder: Private to this engine, for its processes to meet in; None makes one.

        Raises:
            EngineError: The engine cannot run this configuration.
            CheckpointError: The checkpoint is broken.
            EngineStartError: A worker did not get ready, or the workers disagree.
        """
        self.executor = make_executor(
            resolved, engine_index=engine_index, observer=observer, progress=progress, folder=folder
        )
        self.config = config = self.executor.config
        self._engine_index = engine_index
        try:
            layout = plan_cache(config)
            self._counters = Counters()
            self._make_scheduler = partial(
                Scheduler, config, layout, eos_token_ids=eos_token_ids, counters=self._counters
            )
            self._arrivals = 0
            self._open_new_books()
        except BaseException:
            self.executor.close()
            raise

    def _start_afresh(self) -> None:
        """Begin again with no requests and nothing cached, where bookkeeping was cut short."""
        self.executor.forget()
        self._open_new_books()

    def _open_new_books(self) -> None:
        self.scheduler = self._make_scheduler()
        self._live: dict[str, _Live] = {}
        self._aborted: dict[str, FinishedRequest] = {}
        self._torn = False

    def _open_books(self) -> None:
        """Requests and blocks are about to change; `_torn` is taken back when they agree again.

        An interrupt comes between any two instructions. What it left half done is not repaired but given up.
        """
        if self._torn:
            self._start_afresh()
        self._torn = True

    def add(self, requests: Sequence[NewRequest]) -> None:
        """Admit all of the requests, or none.

        Raises:
            RequestError: Any of them is refused; all reasons at once.
        """
        if self._torn:
            self._start_afresh()
        admitted = admit(requests, self.unfinished(), self._check, self._arrivals)
        self._open_books()
        self._arrivals += len(requests)
        for request in admitted:
            self.scheduler.add(request)
            self._live[request.request_id] = _Live(request)
        self._torn = False

    def _check(self, request: Request) -> None:
        check_request(request, self.config, self.scheduler.cache)

    def abort(self, request_ids: Collection[str], *, report: bool = True) -> None:
        """End requests now; unknown ids are passed over.

        Args:
            request_ids: Which.
            report: Whether the next `step` returns each with what it has. Without, it does not even return those
                that an earlier abort asked it to.
        """
        self._open_books()
        self._abort(request_ids, report=report)
        if not report:
            for request_id in request_ids:
                self._aborted.pop(request_id, None)
        self._torn = False

    def _abort(self, request_ids: Collection[str], *, report: bool) -> None:
        for request_id in request_ids:
            live = self._live.get(request_id)
            if live is not None and self.scheduler.abort(request_id):
                finished = self._finish(live.request)
                if report:
                    self._aborted[request_id] = finished

    def stats(self) -> EngineStats:
        """What was counted since the start, and how many requests there are now."""
        return self.scheduler.stats()

    def views(self) -> list[View]:
        """The configuration as the core and each of its workers has it."""
        own = View(role="engine core", engine=self._engine_index, fields=flatten(self.config))
        return [own, *self.executor.views()]

    def check(self) -> None:
        """Look whether the workers are alive, between steps.

        Raises:
            EngineDeadError: They are not; nothing can be computed any more.
        """
        self.executor.check()

    def close(self) -> None:
        """End the workers; nothing can be computed any more. A second call does nothing."""
        self.executor.close()

    @property
    def runner(self) -> "ModelRunner":
        """What computes, where that is this process, for whoever looks inside.

        Raises:
            EngineError: The workers are other processes.
        """
        runner: ModelRunner | None = getattr(self.executor, "runner", None)
        if runner is None:
            raise EngineError("the workers are processes of their own: there is no runner in this one")
        return runner

    def has_unfinished(self) -> bool:
        """Whether `step` has something to do or to report."""
        return bool(self._live or self._aborted) and not self._torn

    def unfinished(self) -> set[str]:
        """Ids of the requests that a `step` has something to do for, or to report of."""
        return set() if self._torn else self._live.keys() | self._aborted.keys()

    def step(self) -> list[FinishedRequest]:
        """Compute one step; returns the requests that ended.

        If the computation fails, the requests of the step are dropped and the error goes on; the others, and those
        that come after, are not touched by it. Workers that died take every request along. An interrupt outside the
        computation costs every request, and what was cached.
        """
        if self._torn:
            self._start_afresh()
        if not self._live:
            return self._take_aborted()
        self._open_books()
        output = self.scheduler.schedule()
        try:
            self._torn = False
            answer = self.executor.execute(output)
            self._torn = True  # in here: an interrupt between the answer and this line must find the handler
        except BaseException as error:
            if isinstance(error, EngineDeadError):
                error.lost = tuple(self.unfinished())
                self._open_new_books()
            elif not self._torn:
                self._drop(output)
            raise
        if answer.logprobs or answer.prompt_logprobs:
            self._collect(output, answer)
        finished = [self._finish(request) for request in self.scheduler.update(output, answer)]
        aborted = self._take_aborted()
        self._torn = False
        return aborted + finished

    def _take_aborted(self) -> list[FinishedRequest]:
        aborted, self._aborted = list(self._aborted.values()), {}
        return aborted

    def _drop(self, output: SchedulerOutput) -> None:
        self._torn = True
        self._abort([chunk.request_id for chunk in output.chunks], report=False)
        self.scheduler.update(output, StepOutput({}, {}, {}))
        self._torn = False

    def _collect(self, output: SchedulerOutput, answer: StepOutput) -> None:
        for request_id, entry in answer.logprobs.items():
            if request_id in self._live:
                self._live[request_id].logprobs.append(entry)
        for chunk in output.chunks:
            found = answer.prompt_logprobs.get(chunk.request_id)
            live = self._live.get(chunk.request_id)
            if found is None or live is None:
                continue
            # Chunks come in order, after a preemption from the start again: what is new goes after what is known.
            end = min(chunk.start + len(chunk.token_ids), chunk.num_prompt_tokens)
            first = end - len(found)
            known: list[TokenLogprobs | None] = live.prompt_logprobs or [None]
            live.prompt_logprobs = [*known[:first], *found]

    def _finish(self, request: Request) -> FinishedRequest:
        live = self._live.pop(request.request_id)
        params = request.sampling_params
        return FinishedRequest(
            request_id=request.request_id,
            token_ids=request.output_token_ids,
            finish_reason=REASONS[request.status],
            logprobs=None if params.logprobs is None else live.logprobs,
            prompt_logprobs=None if params.prompt_logprobs is None else live.prompt_logprobs,
            stats=RequestStats(
                num_cached_tokens=max(request.num_cached_tokens, 0),
                num_preemptions=request.num_preemptions,
                chunks=request.chunks,
                restored_states=request.num_restored_states,
            ),
        )
