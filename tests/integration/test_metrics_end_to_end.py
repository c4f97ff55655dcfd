"""The founding fault's end-to-end check: what a scraper reads is what the schedulers work by and count."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from http_get import get
from staticfire.engine.llm import LLM
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.models.make import ensure
from staticfire.harness.start.service import Service

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LIMIT = 120


def scrape(url: str) -> dict[str, dict[str, Any]]:
    """Metric -> engine -> its value, or its labels where they are what it says; `_by_reason` summed up."""
    status, text = get(f"{url}/metrics")
    assert status == 200
    found: dict[str, dict[str, Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name, engine = sample.name.removeprefix("staticfire:"), sample.labels["engine"]
            if name == "cache_config_info":
                found.setdefault(name, {})[engine] = sample.labels
            elif "le" not in sample.labels:
                before = found.setdefault(name, {}).get(engine, 0.0)
                found[name][engine] = before + sample.value
    return found


def test_two_engines_each_show_what_their_own_scheduler_works_by_until_they_die():
    ensure("jamba-tiny-grow")
    command = [sys.executable, "-m", "staticfire", "start", "jamba-tiny-grow", "--data-parallel-size", "2"]
    process = subprocess.Popen(
        [*command, "--metrics-port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        document = json.loads(process.stdout.readline())
        url = document["address"]
        info = scrape(url)["cache_config_info"]
        cores = {
            v["holder"].removeprefix("engine core "): v["fields"] for v in document["views"] if "core" in v["holder"]
        }
        assert set(info) == set(cores)
        for engine, labels in info.items():
            assert (labels["block_size"], labels["mamba_block_size"]) == ("80", "80")  # 16 was resolved
            settled = {name: value for name, value in cores[engine].items() if name.startswith("runtime.")}
            for name, value in settled.items():
                assert labels.get(name.removeprefix("runtime.")) == (None if value is None else str(value))
            assert "None" not in labels.values()
        assert get(f"{url}/health") == (200, "ok\n")

        children = psutil.Process(process.pid).children(recursive=True)
        (first,) = [p for p in children if '"engine core 0"' in " ".join(p.cmdline())]
        first.kill()
        told = process.stderr.readline()
        assert told.startswith("engine 0 is dead: ")
        assert f"pid {first.pid}" in told
        assert told.endswith("; 1 of 2 left\n")
        status, text = get(f"{url}/health")
        assert status == 503
        assert f"pid {first.pid}" in text
        assert scrape(url)["engine_up"] == {"0": 0.0, "1": 1.0}
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)
        assert process.returncode == 0
        _, alive = psutil.wait_procs(children, timeout=LIMIT)
        assert not alive
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT)


@pytest.mark.parametrize(
    "layout",
    [{}, {"enable_multiprocessing": True}, {"tensor_parallel_size": 2}, {"data_parallel_size": 2}],
    ids=["in-process", "separate", "tp2", "dp2"],
)
def test_counters_are_what_the_schedulers_counted_and_what_the_requests_say(layout):
    prompts = [[(7 * index + start) % 500 + 1 for index in range(170)] for start in range(4)]
    params = SamplingParams(max_tokens=5, ignore_eos=True)
    with LLM(ensure("jamba-tiny-grow"), **layout) as llm, Service(0, "127.0.0.1") as service:
        service.watch(llm.client)
        before = scrape(service.url)
        assert set(before["generation_tokens_total"].values()) == {0.0}
        outputs = [*llm.generate(prompts, params), *llm.generate(prompts, params)]
        service.look()
        shown, counted = scrape(service.url), llm.client.stats()
        engines = len(llm.client.engine_configs)

        def total(name: str) -> float:
            assert len(shown[name]) == engines
            summed: float = sum(shown[name].values())
            return summed

        assert total("prompt_tokens_total") == 8 * 170
        assert total("generation_tokens_total") == 8 * 5
        assert total("prefix_cache_queries_total") == 8 * 170
        assert total("prefix_cache_hits_total") == sum(output.stats.num_cached_tokens for output in outputs)
        if engines == 1:
            assert total("prefix_cache_hits_total") == 4 * 160  # two blocks of 80 of each prompt, the second time
        assert total("num_preemptions_total") == sum(output.stats.num_preemptions for output in outputs)
        assert total("request_success_total") == total("e2e_request_latency_seconds_count") == 8
        assert total("time_to_first_token_seconds_count") == 8
        assert total("inter_token_latency_seconds_count") == 8 * 4
        assert total("num_requests_running") == total("num_requests_waiting") == total("kv_cache_usage_perc") == 0
        for engine, stats in counted.items():
            assert shown["generation_tokens_total"][str(engine)] == stats.generation_tokens
            assert shown["prompt_tokens_total"][str(engine)] == stats.prompt_tokens
            assert shown["prefix_cache_hits_total"][str(engine)] == stats.prefix_cache_hits
