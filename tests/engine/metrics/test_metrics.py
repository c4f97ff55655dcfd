"""Metrics as a scraper sees them: over HTTP, parsed by Prometheus' own parser, compared with what was put in."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from http_get import get
from settled_config import settled_config
from staticfire.engine.errors import EngineError
from staticfire.engine.metrics.catalog import LATENCIES, VALUES
from staticfire.engine.metrics.server import MetricsServer
from staticfire.engine.metrics.snapshot import Board, EngineSnapshot
from staticfire.engine.stats import Distribution, EngineStats

LIMIT = 20
"""Seconds after which an answer is given up."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


grown_config = partial(settled_config, "jamba-tiny-grow")


def latencies(bounds: tuple[float, ...], *at: int, total: float = 0.0) -> Distribution:
    counts = [0] * (len(bounds) + 1)
    for index in at:
        counts[index] += 1
    return Distribution(tuple(counts), total)


def stats(**values: float) -> EngineStats:
    """Every number another one, so that no two metrics can be mixed up unseen."""
    names = [
        field
        for field in EngineStats.__struct_fields__
        if field not in {"time_to_first_token", "inter_token", "end_to_end"}
    ]
    numbers = {name: 100 + index for index, name in enumerate(names)}
    return EngineStats(
        **{**numbers, "kv_cache_usage": 0.25, **values},  # type: ignore[arg-type]
        time_to_first_token=latencies(LATENCIES[0].bounds, 0, 0, 3, total=0.0212),
        inter_token=latencies(LATENCIES[1].bounds, 1, total=0.02),
        end_to_end=latencies(LATENCIES[2].bounds, -1, total=9000.0),
    )


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def server(board: Board) -> Iterator[MetricsServer]:
    with MetricsServer(board.read, 0) as found:
        yield found


def scrape(server: MetricsServer) -> Samples:
    status, text = get(f"{server.url}/metrics")
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def info(samples: Samples, engine: int) -> dict[str, str]:
    """The labels of one engine's `cache_config_info`."""
    (labels,) = [
        dict(labels)
        for (name, labels), value in samples.items()
        if name == "staticfire:cache_config_info" and value == 1.0 and ("engine", str(engine)) in labels
    ]
    return labels


def value(samples: Samples, name: str, engine: int, **labels: str) -> float:
    (found,) = [
        number
        for (sample, having), number in samples.items()
        if sample == f"staticfire:{name}" and {("engine", str(engine)), *labels.items()} <= having
    ]
    return found


def test_cache_config_info_has_the_true_values_of_each_engine(board, server):
    grown, typed = grown_config(), grown_config(block_size=64, num_gpu_blocks_override=77)
    board.publish({0: EngineSnapshot(grown, stats()), 1: EngineSnapshot(typed, stats())})
    samples = scrape(server)
    zero, one = info(samples, 0), info(samples, 1)
    assert (zero["block_size"], zero["mamba_block_size"]) == ("80", "80")  # 16 typed by nobody, aligned by the worker
    assert (one["block_size"], one["num_gpu_blocks"]) == ("128", "77")
    for labels, subject in ((zero, grown), (one, typed)):
        assert {"engine", *asdict(subject.runtime)} - set(labels) == {
            name for name, found in asdict(subject.runtime).items() if found is None
        }
        assert "None" not in labels.values()
        for name, found in asdict(subject.runtime).items():
            assert labels.get(name) == (None if found is None else str(found))
        for name in set(asdict(subject.cache)) - set(asdict(subject.runtime)):
            found = getattr(subject.cache, name)
            assert labels.get(name) == (None if found is None else str(found))


def test_a_dense_model_has_no_state_block_size_rather_than_one_of_none(board, server):
    board.publish({0: EngineSnapshot(settled_config("llama-tiny"), stats())})
    assert "mamba_block_size" not in info(scrape(server), 0)


def test_every_number_is_exported_under_vllms_name(board, server):
    board.publish({0: EngineSnapshot(grown_config(), stats()), 1: EngineSnapshot(grown_config(), stats(num_running=7))})
    samples, put = scrape(server), stats()
    assert value(samples, "num_requests_running", 0) == put.num_running
    assert value(samples, "num_requests_running", 1) == 7
    assert value(samples, "num_requests_waiting", 0) == put.num_waiting
    assert value(samples, "kv_cache_usage_perc", 0) == 0.25
    assert value(samples, "num_preemptions_total", 0) == put.num_preemptions
    assert value(samples, "prompt_tokens_total", 0) == put.prompt_tokens
    assert value(samples, "generation_tokens_total", 0) == put.generation_tokens
    assert value(samples, "prefix_cache_queries_total", 0) == put.prefix_cache_queries
    assert value(samples, "prefix_cache_hits_total", 0) == put.prefix_cache_hits
    assert value(samples, "request_success_total", 0, finished_reason="stop") == put.finished_stop
    assert value(samples, "request_success_total", 0, finished_reason="length") == put.finished_length
    assert value(samples, "request_success_total", 0, finished_reason="abort") == put.finished_abort
    assert value(samples, "num_requests_running", 0, model_name="jamba-tiny-grow") == put.num_running
    families = {name for name, _ in samples}
    assert len(
        {name.removesuffix("_total") for name in families if not name.endswith(("_bucket", "_count", "_sum"))}
    ) == (len(VALUES) + 2)


def test_histograms_accumulate(board, server):
    board.publish({0: EngineSnapshot(grown_config(), stats())})
    samples = scrape(server)
    first = {
        le: value(samples, "time_to_first_token_seconds_bucket", 0, le=le) for le in ("0.001", "0.005", "0.02", "+Inf")
    }
    assert first == {"0.001": 2, "0.005": 2, "0.02": 3, "+Inf": 3}
    assert value(samples, "time_to_first_token_seconds_count", 0) == 3
    assert value(samples, "time_to_first_token_seconds_sum", 0) == 0.0212
    assert value(samples, "e2e_request_latency_seconds_bucket", 0, le="7680.0") == 0
    assert value(samples, "e2e_request_latency_seconds_bucket", 0, le="+Inf") == 1
    assert value(samples, "inter_token_latency_seconds_count", 0) == 1


def test_nothing_is_shown_before_it_is_known(board, server):
    assert {name for name, _ in scrape(server)} == set()
    board.publish({0: EngineSnapshot()})
    assert {(name, number) for (name, _), number in scrape(server).items()} == {("staticfire:engine_up", 0.0)}


def test_our_registry_is_our_own(board, server):
    board.publish({0: EngineSnapshot(grown_config(), stats())})
    assert all(name.startswith("staticfire:") for name, _ in scrape(server))
    assert not any(family.name.startswith("staticfire") for family in REGISTRY.collect())


def test_health_names_the_dead_engine(board, server):
    health = f"{server.url}/health"
    assert get(health) == (503, "no engine is ready\n")
    alive = EngineSnapshot(grown_config(), stats())
    board.publish({0: alive, 1: alive})
    assert get(health) == (200, "ok\n")
    assert get(health, "HEAD") == (200, "")
    assert get(health, "POST")[0] == 405
    board.publish({0: alive, 1: replace(alive, dead="killed by SIGKILL")})
    assert get(health) == (503, "engine 1 is dead: killed by SIGKILL\n")
    assert value(scrape(server), "engine_up", 1) == 0
    assert value(scrape(server), "engine_up", 0) == 1


def test_other_pages_are_not_found(server):
    for path in ("/", "/metric", "/metrics/x", "/healthz"):
        status, text = get(server.url + path)
        assert status == 404
        assert "/metrics and /health" in text


def test_a_port_in_use_is_one_error(server):
    with pytest.raises(
        EngineError, match=rf"metrics on 127.0.0.1:{server.port}: cannot listen: Address already in use"
    ):
        MetricsServer(dict, server.port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_one_error(host):
    with pytest.raises(EngineError, match="cannot listen"):
        MetricsServer(dict, 0, host)


@pytest.mark.parametrize("port", [70000, -1])
def test_a_port_that_is_none_is_one_error(port):
    with pytest.raises(EngineError, match="cannot listen"):
        MetricsServer(dict, port)


def test_closing_frees_the_port_and_leaves_no_thread():
    server = MetricsServer(dict, 0)
    assert any(thread.name == "metrics" for thread in threading.enumerate())
    server.close()
    server.close()
    assert not any(thread.name == "metrics" for thread in threading.enumerate())
    MetricsServer(dict, server.port).close()


def test_a_silent_client_keeps_nobody_waiting(board, server):
    board.publish({0: EngineSnapshot(grown_config(), stats())})
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT):
        assert get(f"{server.url}/health")[0] == 200
