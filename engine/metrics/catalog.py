"""Every metric that is exported, once: its name, kind, meaning, and where its value comes from.

Names and meanings are those of vLLM's V1 engine with another prefix, so that a dashboard needs one edit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from staticfire.engine.stats import END_TO_END, INTER_TOKEN, TIME_TO_FIRST_TOKEN, Distribution, EngineStats

PREFIX: Final = "staticfire:"
CACHE_CONFIG_INFO: Final = f"{PREFIX}cache_config_info"
ENGINE_UP: Final = f"{PREFIX}engine_up"
ENGINE_LABELS: Final = ("engine", "model_name")
"""Labels of every metric but `cache_config_info`."""


@dataclass(frozen=True, slots=True)
class Value:
    """A gauge or a counter.

    Attributes:
        name: Without the prefix, and without the `_total` that a counter gets when it is exported.
        kind: What Prometheus takes it for.
        meaning: One line.
        read: Its samples: further labels, and the value.
    """

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    read: Callable[[EngineStats], tuple[tuple[dict[str, str], float], ...]]


@dataclass(frozen=True, slots=True)
class Latency:
    """A histogram of seconds."""

    name: str
    meaning: str
    bounds: tuple[float, ...]
    read: Callable[[EngineStats], Distribution]


def _one(read: Callable[[EngineStats], float]) -> Callable[[EngineStats], tuple[tuple[dict[str, str], float], ...]]:
    return lambda stats: (({}, read(stats)),)


def _finished(stats: EngineStats) -> tuple[tuple[dict[str, str], float], ...]:
    by_reason = {"stop": stats.finished_stop, "length": stats.finished_length, "abort": stats.finished_abort}
    return tuple(({"finished_reason": reason}, count) for reason, count in by_reason.items())


VALUES: Final = (
    Value("num_requests_running", "gauge", "Requests that hold blocks.", _one(lambda s: s.num_running)),
    Value("num_requests_waiting", "gauge", "Requests that hold none, new or preempted.", _one(lambda s: s.num_waiting)),
    Value(
        "kv_cache_usage_perc",
        "gauge",
        "Share of the usable blocks in use, 0 to 1.",
        _one(lambda s: s.kv_cache_usage),
    ),
    Value(
        "num_preemptions", "counter", "Times a request lost its blocks to another.", _one(lambda s: s.num_preemptions)
    ),
    Value("prompt_tokens", "counter", "Prompt tokens done, cached ones included.", _one(lambda s: s.prompt_tokens)),
    Value("generation_tokens", "counter", "Tokens generated.", _one(lambda s: s.generation_tokens)),
    Value(
        "prefix_cache_queries",
        "counter",
        "Tokens looked up in the prefix cache, once a request.",
        _one(lambda s: s.prefix_cache_queries),
    ),
    Value(
        "prefix_cache_hits",
        "counter",
        "Tokens found in the prefix cache, once a request.",
        _one(lambda s: s.prefix_cache_hits),
    ),
    Value("request_success", "counter", "Requests ended, by reason: stop, length, abort.", _finished),
)

LATENCIES: Final = (
    Latency(
        "time_to_first_token_seconds",
        "From arrival at the engine core to the first token.",
        TIME_TO_FIRST_TOKEN,
        lambda s: s.time_to_first_token,
    ),
    Latency("inter_token_latency_seconds", "Between two tokens of one request.", INTER_TOKEN, lambda s: s.inter_token),
    Latency(
        "e2e_request_latency_seconds",
        "From arrival at the engine core to the last token; aborted requests are left out.",
        END_TO_END,
        lambda s: s.end_to_end,
    ),
)
