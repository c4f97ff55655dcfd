"""The contract of real releases: what each front end makes of two engines, and the smallest examples that break it."""

from functools import cache

import pytest
import vllm_envs

from staticfire.harness.probe.vllm.process import Limits
from staticfire.harness.sync.contract.audit import audit
from staticfire.harness.sync.contract.vllm import VllmSubject

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

CACHE = "vllm_config.cache_config"
FOUND = {
    "0.28.0": {
        ("arrival-order", "block_size"),
        ("arrival-order", "kv_cache_size_tokens"),
        ("arrival-order", "kv_cache_max_concurrency"),
        ("re-delivery", "num_gpu_blocks"),
        ("disagreement", "block_size"),
        ("disagreement", "kv_cache_size_tokens"),
        ("disagreement", "kv_cache_max_concurrency"),
    }
}
FOUND["0.27.1"] = FOUND["0.28.0"]
FOUND["0.33.0"] = FOUND["0.28.0"] | {
    ("missing-field", "mamba_block_size"),
    ("arrival-order", "mamba_block_size"),
    ("none-after-value", "mamba_block_size"),
    ("disagreement", "mamba_block_size"),
}
MERGES = {
    "max_model_len": "the smallest",
    "num_gpu_blocks": "added up",
    "block_size": "the last to answer wins",
    "kv_cache_size_tokens": "the first to answer wins",
    "kv_cache_max_concurrency": "the first to answer wins",
    "dp_stats_address": "refused where they differ",
}
NEWER = {
    "mamba_block_size": "the last to answer wins",
    "effective_attention_block_size": "one value where all agree, else None",
    "kv_events_config": "each engine's own is kept",
    "coord_store_port": "refused where they differ",
    "coordinator_input_address": "refused where they differ",
    "coordinator_output_address": "refused where they differ",
}


@pytest.fixture(scope="session")
def hold(interpreters):
    @cache
    def one(version):
        subject = VllmSubject(str(interpreters[version]), Limits(start=600, question=120))
        try:
            return audit(subject, seconds=1200)
        finally:
            subject.close()

    return one


@pytest.mark.parametrize("version", vllm_envs.VERSIONS)
def test_what_breaks_is_what_was_read_in_the_source(hold, version):
    report = hold(version)
    assert report.about.engine == f"vllm {version}"
    assert {(finding.rule, finding.field) for finding in report.findings} == FOUND[version]
    assert not any(one.untried for one in report.tried)


@pytest.mark.parametrize("version", vllm_envs.VERSIONS)
def test_the_rules_read_off_are_those_of_the_source(hold, version):
    report = hold(version)
    tried = {name: merge for name, merge in report.merges.items() if merge != "not read"}
    assert tried == MERGES | (NEWER if version == "0.33.0" else {})


@pytest.mark.parametrize("version", vllm_envs.VERSIONS)
def test_a_place_is_the_line_that_takes_the_field_over(hold, interpreters, version):
    for finding in hold(version).findings:
        path, _, line = finding.where.rpartition(":")
        source = (vllm_envs.root() / f"vllm-{version}" / path).read_text().splitlines()
        assert f"response.{finding.field}" in source[int(line) - 1]


def test_a_late_none_erases_and_a_second_delivery_counts_twice(hold):
    found = {(finding.rule, finding.field): finding.example for finding in hold("0.33.0").findings}
    erased = found["none-after-value", "mamba_block_size"]
    assert erased.messages == ((0, {"mamba_block_size": 1056}), (1, {"mamba_block_size": None}))
    assert erased.ends == {f"{CACHE}.mamba_block_size": None}
    assert erased.otherwise == {f"{CACHE}.mamba_block_size": 1056}
    again = found["re-delivery", "num_gpu_blocks"]
    assert again.messages == ((0, {"num_gpu_blocks": 1056}), (0, {"num_gpu_blocks": 1056}))
    assert again.ends == {f"{CACHE}.num_gpu_blocks": 2112}


def test_one_value_where_all_agree_is_by_design(hold):
    tried = {one.rule: one for one in hold("0.33.0").tried}
    assert set(tried["none-after-value"].declared) == {"effective_attention_block_size"}
