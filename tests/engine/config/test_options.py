"""Every keyword of the vLLM versions we follow is known, and each is judged by its own reason."""

import json
from pathlib import Path

import pytest

from staticfire.engine.config import resolve
from staticfire.engine.config.options import FLAGS, HARMLESS, KNOWN, LISTS, VERSIONS
from staticfire.engine.config.rules.examples import example_model
from staticfire.engine.config.typed import BESIDE_ENGINE_ARGS, IMPLEMENTED

KEYWORDS = json.loads((Path(__file__).parent / "vllm_keywords.json").read_text(encoding="utf-8"))
LLAMA = example_model("llama")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_keyword_is_known(version):
    assert len(KEYWORDS[version]) > 200
    assert set(KEYWORDS[version]) <= set(KNOWN) | IMPLEMENTED


def test_no_keyword_is_invented_and_versions_are_right():
    named = {name for names in KEYWORDS.values() for name in names}
    assert named == (set(KNOWN) | IMPLEMENTED) - BESIDE_ENGINE_ARGS
    assert not named & BESIDE_ENGINE_ARGS
    for name, option in KNOWN.items():
        assert option.versions == tuple(version for version in VERSIONS if name in KEYWORDS[version]), name


def test_a_keyword_has_one_status():
    assert not set(KNOWN) & IMPLEMENTED
    assert {*FLAGS.split(), *LISTS.split(), *HARMLESS} <= set(KNOWN)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_each_is_accepted_without_effect_or_refused_with_its_reason(name):
    option = KNOWN[name]
    resolution = resolve({name: ["something"]}, LLAMA)
    if option.effect == "none":
        assert resolution.accepted
        assert [r.message for r in resolution.rewrites] == [f"{name} has no effect: {option.reason}"]
    else:
        [violation] = resolution.violations
        assert violation.code == "SF501"
        assert option.reason in violation.message
        assert name in violation.message
    for nothing in (None, False, 0, "", [], {}, *HARMLESS.get(name, ())):
        assert resolve({name: nothing}, LLAMA).accepted
