"""The catalogue judges itself: every rule has an example that breaks it and nothing else, and a fix that works."""

import re
from inspect import getfile
from pathlib import Path

import pytest

from staticfire.engine.config import repairs, resolve
from staticfire.engine.config.draft import KEYWORD_OF
from staticfire.engine.config.release import REFERENCE, RELEASES
from staticfire.engine.config.repair import apply
from staticfire.engine.config.rules import registry
from staticfire.engine.config.rules.base import Rule
from staticfire.engine.config.rules.examples import DEVICES, MODELS, example_model
from staticfire.engine.config.rules.registry import BY_CODE, BY_NAME, CATALOGUE, REWRITES, RULES

NOT_RULES = {"__init__", "base", "registry", "examples", "ranks"}
every_rule = pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.code)
every_refusal = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
every_rewrite = pytest.mark.parametrize("rule", REWRITES, ids=lambda rule: rule.code)


def judged(example):
    return resolve(example.typed, example_model(example.model), *_where(example))


def _where(example):
    return DEVICES[example.device], RELEASES[example.release]


def test_every_file_is_listed_and_every_code_is_unique():
    folder = Path(getfile(registry)).parent
    files = {path.stem for path in folder.glob("*.py")} - NOT_RULES
    assert files == {rule.name.replace("-", "_") for rule in CATALOGUE}
    assert len(BY_CODE) == len(BY_NAME) == len(CATALOGUE)
    assert [rule.code for rule in CATALOGUE] == sorted(rule.code for rule in CATALOGUE)


def test_there_are_twenty_refusals_or_more():
    assert len(RULES) >= 20


@every_rule
def test_names_and_words(rule):
    assert re.fullmatch(r"SF[1-9]\d\d", rule.code)
    assert (rule.code[2] == "6") == (not isinstance(rule, Rule))
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", rule.name)
    for text in (rule.summary, rule.why, rule.fix):
        assert text.endswith("."), text
        assert "  " not in text
    assert len(rule.summary) <= 100
    assert len(rule.why) > 40
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)


@every_rule
def test_it_reads_settled_fields(rule):
    values = resolve({}, example_model("jamba")).values
    assert bool(rule.fields) == (rule.code not in {"SF501", "SF608"})  # they read keywords that no section holds
    assert set(rule.fields) <= set(values)


@every_refusal
def test_its_example_breaks_it_and_nothing_else(rule):
    resolution = judged(rule.example)
    violation = [*resolution.violations, *resolution.limits][0]
    assert len(resolution.violations) + len(resolution.limits) == 1
    assert violation.code == rule.code
    assert resolution.verdict == ("not known" if rule.silences else "refused")
    assert violation.name == rule.name
    assert violation.chain
    assert resolution.config is None
    assert (resolution.runtime is None) == rule.breaks_runtime


@every_refusal
def test_its_fix_repairs_the_example(rule):
    example = rule.example
    if example.fix is None:
        assert repairs(example.typed, example_model(example.model), *_where(example)) == ()
        return
    assert example.fix
    typed = {name: value for name, value in {**example.typed, **example.fix}.items() if value is not None}
    assert resolve(typed, example_model(example.model), *_where(example)).accepted


@every_refusal
def test_a_repair_is_found_for_its_example(rule):
    example, model = rule.example, example_model(rule.example.model)
    fixes = repairs(example.typed, model, *_where(example))
    assert bool(fixes) == (example.fix is not None)
    for fix in fixes:
        assert len(fix.set) + len(fix.drop) == 1
        assert resolve(apply(example.typed, fix), model, *_where(example)).accepted


@every_refusal
def test_only_the_engines_that_it_holds_for_refuse_by_it(rule):
    example = rule.example
    for release in RELEASES.values():
        found = resolve(example.typed, example_model(example.model), DEVICES[example.device], release)
        if not rule.holds(release):
            assert rule.code not in {violation.code for violation in found.violations}
    assert rule.holds(RELEASES[example.release])


@every_refusal
def test_what_only_the_reference_engine_lacks_refuses_for_no_other(rule):
    example = rule.example
    for release in RELEASES.values():
        found = resolve(example.typed, example_model(example.model), DEVICES[example.device], release)
        codes = {violation.code for violation in found.violations}
        if rule.limit and release is not REFERENCE:
            assert rule.code not in codes
            if found.verdict != "refused":  # another rule of the release may refuse it
                applies = rule.code in {limit.code for limit in found.limits}  # 0.33 overwrites a typed cache mode
                assert found.verdict == ("not known" if applies else "accepted")
                assert repairs(example.typed, example_model(example.model), DEVICES[example.device], release) == ()
        assert not found.limits or release is not REFERENCE
        assert (found.config is not None) == (found.verdict == "accepted")


@every_rewrite
def test_its_example_shows_the_replacement_and_is_accepted(rule):
    resolution = judged(rule.example)
    assert resolution.accepted, resolution.violations
    assert [rewrite.code for rewrite in resolution.rewrites] == [rule.code]
    rewrite = resolution.rewrites[0]
    assert rewrite.name == rule.name
    assert rewrite.typed != rewrite.value
    keyword = KEYWORD_OF.get(rewrite.field, rewrite.field)
    assert rule.example.typed[keyword] == rewrite.typed


@pytest.mark.parametrize("name", MODELS)
def test_the_models_of_the_examples_are_sound(name):
    model = example_model(name)
    resolution = resolve({}, model)
    assert resolution.accepted == (model.quant_method is None)


def test_messages_name_the_values_that_clash():
    for rule in RULES:
        found = judged(rule.example)
        message = (*found.violations, *found.limits)[0].message
        assert re.search(r"[\d=]|quantiz", message), (rule.code, message)
