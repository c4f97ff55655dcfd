"""The engine core: scheduler and worker, stepped until every request has ended.

The front end (`llm.py`) talks to it in plain values only: `NewRequest`s and ids in, `FinishedRequest`s out. A process
boundary can therefore be put between the two without touching either.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.errors import EngineError, RequestError
from staticfire.engine.observer import Observer
from staticfire.engine.outputs import RequestStats
from staticfire.engine.request import Request, RequestStatus
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.admission import check_request
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput, TokenLogprobs
from staticfire.engine.scheduler.scheduler import Scheduler
from staticfire.engine.worker.load import load_model
from staticfire.engine.worker.runner import ModelRunner
from staticfire.engine.worker.settle import settle_worker

FinishReason = Literal["stop", "length", "abort"]

REASONS: dict[RequestStatus, FinishReason] = {
    RequestStatus.FINISHED_STOPPED: "stop",
    RequestStatus.FINISHED_LENGTH: "length",
    RequestStatus.FINISHED_ABORTED: "abort",
}
"""Final status -> what the user is told."""


@dataclass(frozen=True, slots=True)
class NewRequest:
    """What the front end asks for."""

    request_id: str
    prompt_token_ids: list[int]
    sampling_params: SamplingParams


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """What the front end gets.

    Attributes:
        request_id: Whose.
        token_ids: Generated tokens.
        finish_reason: Why it ended.
        logprobs: One entry per generated token, None unless asked for.
        prompt_logprobs: One entry per prompt token, the first None; None unless asked for.
        stats: What happened on the way.
    """

    request_id: str
    token_ids: list[int]
    finish_reason: FinishReason
    logprobs: list[TokenLogprobs] | None
    prompt_logprobs: list[TokenLogprobs | None] | None
    stats: RequestStats


@dataclass(slots=True)
class _Live:
    """A request and what was collected for it."""

    request: Request
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs | None] = field(default_factory=list)


class EngineCore:
    """Owns the scheduler and the worker."""

    def __init__(
        self, resolved: ResolvedConfig, eos_token_ids: Collection[int] = (), observer: Observer | None = None
    ) -> None:
        """Load the model, map the caches.

        Raises:
            EngineError: The engine cannot run this configuration.
            CheckpointError: The checkpoint is broken.
        """
        _refuse_parallel(resolved)
        config = settle_worker(resolved)
        layout = plan_cache(config)
        self.config = config
        self.runner = ModelRunner(load_model(config), layout, observer)
        self._make_scheduler = partial(Scheduler, config, layout, eos_token_ids=eos_token_ids)
        self._arrivals = 0
        self._start_afresh()

    def _start_afresh(self) -> None:
        """Begin with no requests and nothing cached: after construction, and where bookkeeping was cut short."""
        self.scheduler = self._make_scheduler()
        self.runner.forget()
        self._live: dict[str, _Live] = {}
        self._aborted: list[FinishedRequest] = []
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
        admitted, faults, taken = [], [], set(self._live)
        for number, new in enumerate(requests):
            request = Request(new.request_id, list(new.prompt_token_ids), new.sampling_params, self._arrivals + number)
            admitted.append(request)
            if new.request_id in taken:
                faults.append(f"request {new.request_id!r}: the id is in use by an unfinished request")
            taken.add(new.request_id)
            try:
                check_request(request, self.config, self.scheduler.cache)
            except RequestError as error:
                faults.append(str(error))
        if faults:
            raise RequestError("\n".join(faults))
        self._open_books()
        self._arrivals += len(requests)
        for request in admitted:
            self.scheduler.add(request)
            self._live[request.request_id] = _Live(request)
        self._torn = False

    def abort(self, request_ids: Collection[str], *, report: bool = True) -> None:
        """End requests now; unknown ids are passed over.

        Args:
            request_ids: Which.
            report: Whether the next `step` returns each with what it has.
        """
        self._open_books()
        self._abort(request_ids, report=report)
        self._torn = False

    def _abort(self, request_ids: Collection[str], *, report: bool) -> None:
        for request_id in request_ids:
            live = self._live.get(request_id)
            if live is not None and self.scheduler.abort(request_id):
                finished = self._finish(live.request)
                if report:
                    self._aborted.append(finished)

    def has_unfinished(self) -> bool:
        """Whether `step` has something to do or to report."""
        return bool(self._live or self._aborted) and not self._torn

    def step(self) -> list[FinishedRequest]:
        """Compute one step; returns the requests that ended.

        If the computation fails, the requests of the step are dropped and the error goes on; the others, and those
        that come after, are not touched by it. An interrupt outside the computation costs every request, and what
        was cached.
        """
        if not self._live:
            aborted, self._aborted = self._aborted, []
            return aborted
        self._open_books()
        output = self.scheduler.schedule()
        try:
            self._torn = False
            answer = self.runner.execute(output)
        except BaseException:
            if not self._torn:
                self._drop(output)
            raise
        self._torn = True
        if answer.logprobs or answer.prompt_logprobs:
            self._collect(output, answer)
        finished = [self._finish(request) for request in self.scheduler.update(output, answer)]
        aborted, self._aborted = self._aborted, []
        self._torn = False
        return aborted + finished

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


def _refuse_parallel(config: ResolvedConfig) -> None:
    """Raise unless the model runs in one piece."""
    parallel = config.parallel
    sizes = {
        "tensor_parallel_size": parallel.tensor_parallel_size,
        "pipeline_parallel_size": parallel.pipeline_parallel_size,
        "data_parallel_size": parallel.data_parallel_size,
    }
    faults = [f"{name}={size}" for name, size in sizes.items() if size != 1]
    if faults:
        raise EngineError(
            f"{', '.join(faults)}: this engine runs a model in one piece for now; such a configuration can be "
            "explained, but not executed"
        )
