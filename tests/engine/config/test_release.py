"""The engine that is imitated is a value of its own, and what differs by release is a fact in one table."""

import pytest

from staticfire.engine.config.acceptance import accept
from staticfire.engine.config.device import CPU
from staticfire.engine.config.options import VERSIONS
from staticfire.engine.config.release import NEWEST, REFERENCE, RELEASES, VLLM_RELEASES
from staticfire.engine.config.repair import repairs
from staticfire.engine.config.resolver import resolve
from staticfire.engine.config.rules.examples import example_model


def test_the_table_has_the_releases_whose_keywords_are_known():
    assert tuple(release.version for release in VLLM_RELEASES) == VERSIONS
    assert NEWEST.version == VERSIONS[-1]


def test_every_release_is_found_by_the_name_that_it_says():
    assert {name: release.name for name, release in RELEASES.items()} == {name: name for name in RELEASES}
    assert "reference" in RELEASES
    assert "vllm==0.33.0" in RELEASES


@pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
def test_a_refused_configuration_is_repaired_for_the_release_it_is_judged_for(release):
    model = example_model("llama")
    typed = {"enable_lora": True}
    assert not resolve(typed, model, CPU, release).accepted
    for fix in repairs(typed, model, CPU, release):
        assert fix.drop == ("enable_lora",)


def test_what_is_to_run_is_resolved_for_the_engine_of_this_package():
    model = example_model("jamba")
    assert accept({}, model) == resolve({}, model, CPU, REFERENCE).config
