"""From a snapshot of the engines to Prometheus metric families, made anew at every scrape."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.metrics.catalog import (
    CACHE_CONFIG_INFO,
    ENGINE_LABELS,
    ENGINE_UP,
    LATENCIES,
    PREFIX,
    VALUES,
    Latency,
    Value,
)
from staticfire.engine.metrics.snapshot import EngineSnapshot, Snapshot, Source
from staticfire.engine.stats import EngineStats


def cache_config_labels(config: EngineConfig) -> dict[str, str]:
    """Every field of the cache and of the run-time values of one engine.

    Where both have a name (`block_size`), the run-time value counts: it is the one in force. A field without a value
    (a padded page where nothing is padded) is left out, which is what Prometheus takes an empty label for; the text
    "None" is never a value.
    """
    fields = asdict(config.cache) | asdict(config.runtime)
    return {name: str(value) for name, value in fields.items() if value is not None}


class EngineCollector(Collector):
    """Exports what a source shows.

    Args:
        source: Read once a scrape, so that all values of an answer belong together.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Nothing: registration must not need an engine."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families; engines that are not ready, or have reported nothing, have no samples in them."""
        snapshot = self._source()
        ready = {index: found for index, found in sorted(snapshot.items()) if found.config is not None}
        yield _cache_config_info(ready)
        yield _engine_up(snapshot)
        reported = [
            ((str(index), found.config.model.model), found.stats)
            for index, found in ready.items()
            if found.config is not None and found.stats is not None
        ]
        for value in VALUES:
            yield _value(value, reported)
        for latency in LATENCIES:
            yield _latency(latency, reported)


def make_registry(source: Source) -> CollectorRegistry:
    """A registry of its own, so that nothing of another library in the process is exported."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EngineCollector(source))
    return registry


def _cache_config_info(ready: dict[int, EngineSnapshot]) -> Metric:
    family = GaugeMetricFamily(CACHE_CONFIG_INFO, "Cache configuration in force, for each engine.")
    for index, found in ready.items():
        if found.config is not None:
            family.add_sample(CACHE_CONFIG_INFO, {"engine": str(index), **cache_config_labels(found.config)}, 1.0)
    return family


def _engine_up(snapshot: Snapshot) -> Metric:
    family = GaugeMetricFamily(ENGINE_UP, "Whether the engine serves.", labels=["engine"])
    for index, found in sorted(snapshot.items()):
        family.add_metric([str(index)], float(found.config is not None and found.dead is None))
    return family


def _value(value: Value, reported: list[tuple[tuple[str, str], EngineStats]]) -> Metric:
    kind = GaugeMetricFamily if value.kind == "gauge" else CounterMetricFamily
    family: Metric = kind(PREFIX + value.name, value.meaning)
    suffix = "_total" if value.kind == "counter" else ""
    for labels, stats in reported:
        for further, number in value.read(stats):
            shown = dict(zip(ENGINE_LABELS, labels, strict=True)) | further
            family.add_sample(PREFIX + value.name + suffix, shown, number)
    return family


def _latency(latency: Latency, reported: list[tuple[tuple[str, str], EngineStats]]) -> Metric:
    family = HistogramMetricFamily(PREFIX + latency.name, latency.meaning, labels=ENGINE_LABELS)
    bounds = [*map(str, latency.bounds), "+Inf"]
    for labels, stats in reported:
        found = latency.read(stats)
        buckets = list(zip(bounds, accumulate(found.counts), strict=True))
        family.add_metric(labels, buckets, sum_value=found.total)
    return family
