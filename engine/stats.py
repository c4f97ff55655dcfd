"""What an engine core counts: plain values that only grow, taken where things happen. Imports no torch.

Counters and histograms are cumulative since the engine started, so a report that is lost or delivered twice costs
nothing: the newest one says everything. Times are taken on the engine's monotonic clock.
"""

import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

import msgspec

from staticfire.engine.request import Request, RequestStatus

TIME_TO_FIRST_TOKEN: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
INTER_TOKEN: Final = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
END_TO_END: Final = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
"""Upper bounds of the buckets in seconds, those of vLLM, so that one dashboard reads both."""


class Distribution(msgspec.Struct, frozen=True):
    """A histogram of seconds.

    Attributes:
        counts: Values in each bucket, not accumulated; the last bucket is what lies above every bound.
        total: Sum of all values.
    """

    counts: tuple[int, ...]
    total: float

    @property
    def count(self) -> int:
        """How many values."""
        return sum(self.counts)


class EngineStats(msgspec.Struct, frozen=True, kw_only=True):
    """One engine, at one moment.

    Attributes:
        num_running: Requests that hold blocks.
        num_waiting: Requests that hold none, preempted ones included.
        kv_cache_usage: Share of the pool's usable blocks that requests hold, 0 to 1.
        num_preemptions: Times any request lost its blocks.
        prompt_tokens: Prompt tokens of requests whose prompt is done, cached ones included; each prompt once.
        generation_tokens: Tokens drawn.
        prefix_cache_queries: Tokens looked up in the prefix cache, at the first admission of each request.
        prefix_cache_hits: Tokens found there.
        finished_stop: Requests ended by an end-of-sequence or stop token.
        finished_length: Requests ended by their length.
        finished_abort: Requests ended from outside, or dropped with a step that failed.
        time_to_first_token: From arrival at the core to the first token.
        inter_token: Between two tokens of one request, time spent preempted included.
        end_to_end: From arrival to the last token of requests that were not aborted.
    """

    num_running: int
    num_waiting: int
    kv_cache_usage: float
    num_preemptions: int
    prompt_tokens: int
    generation_tokens: int
    prefix_cache_queries: int
    prefix_cache_hits: int
    finished_stop: int
    finished_length: int
    finished_abort: int
    time_to_first_token: Distribution
    inter_token: Distribution
    end_to_end: Distribution


class _Histogram:
    """Counts values into buckets."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Distribution:
        return Distribution(tuple(self._counts), self._total)


class Counters:
    """What the scheduler tells of; one object lives as long as the engine core, whatever scheduler comes and goes.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self.num_preemptions = 0
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.prefix_cache_queries = 0
        self.prefix_cache_hits = 0
        self._finished = {
            RequestStatus.FINISHED_STOPPED: 0,
            RequestStatus.FINISHED_LENGTH: 0,
            RequestStatus.FINISHED_ABORTED: 0,
        }
        self._first_token = _Histogram(TIME_TO_FIRST_TOKEN)
        self._inter_token = _Histogram(INTER_TOKEN)
        self._end_to_end = _Histogram(END_TO_END)

    def looked_up(self, tokens: int, hits: int) -> None:
        """A request was admitted for the first time, after `tokens` were looked up and `hits` of them found."""
        self.prefix_cache_queries += tokens
        self.prefix_cache_hits += hits

    def token(self, request: Request, now: float) -> None:
        """A token was drawn for a request, and is the last of its output tokens."""
        self.generation_tokens += 1
        if len(request.output_token_ids) == 1:
            self.prompt_tokens += request.num_prompt_tokens
            self._first_token.observe(now - request.arrived_at)
        else:
            self._inter_token.observe(now - request.last_token_at)
        request.last_token_at = now

    def finished(self, request: Request, now: float) -> None:
        """A request has ended, by whatever way its status says."""
        self._finished[request.status] += 1
        if request.status is not RequestStatus.FINISHED_ABORTED:
            self._end_to_end.observe(now - request.arrived_at)

    def snapshot(self, *, num_running: int, num_waiting: int, kv_cache_usage: float) -> EngineStats:
        """Everything counted so far, beside what holds at this moment."""
        finished = self._finished
        return EngineStats(
            num_running=num_running,
            num_waiting=num_waiting,
            kv_cache_usage=kv_cache_usage,
            num_preemptions=self.num_preemptions,
            prompt_tokens=self.prompt_tokens,
            generation_tokens=self.generation_tokens,
            prefix_cache_queries=self.prefix_cache_queries,
            prefix_cache_hits=self.prefix_cache_hits,
            finished_stop=finished[RequestStatus.FINISHED_STOPPED],
            finished_length=finished[RequestStatus.FINISHED_LENGTH],
            finished_abort=finished[RequestStatus.FINISHED_ABORTED],
            time_to_first_token=self._first_token.snapshot(),
            inter_token=self._inter_token.snapshot(),
            end_to_end=self._end_to_end.snapshot(),
        )


NOTHING_YET: Final = Counters().snapshot(num_running=0, num_waiting=0, kv_cache_usage=0.0)
"""What an engine that has not spoken yet has counted."""
