"""Which refusals become findings, where, and how certain they are."""

from dataclasses import replace
from typing import Any

import pytest

from fake_engine import CHUNKED, ORIGIN, FakeEngine, configuration, parametrized, scan, site
from staticfire.harness.check.base import Change
from staticfire.harness.check.run import check
from staticfire.harness.probe.base import Rejected
from staticfire.harness.scan.base import Guard, Location, Negative, Unknown

RUNNER = {"enable_chunked_prefill": False, "max_model_len": 1024}
ELSEWHERE = Location("tests/test_a.py", 3, 1)


def checked(*sites):
    return check(scan(*sites), FakeEngine())


def only(report):
    (finding,) = report.findings
    return finding


def test_the_default_of_a_wrapper_is_found_and_typing_it_at_the_site_is_the_first_repair():
    found = only(checked(site(configuration(defaults=RUNNER, quantization="experts_int8"))))
    assert (found.kind, found.certainty, found.origin) == ("refused", "certain", ORIGIN)
    assert found.message == CHUNKED
    assert found.repairs[0] == (Change("enable_chunked_prefill", True),)
    assert found.repairs[1] == (Change("enable_prefix_caching", False),)  # tried though nobody types it
    assert found.chain == ("mamba_cache_mode=align: derived",)
    assert str(found.sites[0]) == "tests/test_a.py:10:10"


def test_sites_with_one_cause_and_one_repair_are_one_finding():
    wrapped = site(configuration(defaults=RUNNER), line=5)
    typed_there = site(configuration(enable_chunked_prefill=False), line=9, form="LLM")
    other_file = site(configuration(defaults=RUNNER, seed=1), path="tests/b.py", line=1)
    fine = site(configuration("org/dense", defaults=RUNNER), line=20)
    report = checked(typed_there, other_file, fine, wrapped)
    found = only(report)
    assert [str(place) for place in found.sites] == ["tests/b.py:1:10", "tests/test_a.py:5:10", "tests/test_a.py:9:10"]
    assert found.repair == (Change("enable_chunked_prefill", True),)
    assert report.last_line == "1 finding; 4 of 4 sites judged"


def test_only_the_parameter_sets_concerned_are_named():
    base = configuration(defaults=RUNNER)
    sets: dict[str, dict[str, Any]] = {"a-x": {"model": "org/dense"}, "b-x": {}, "b-y": {"seed": 3}}
    variants = parametrized(base, **sets)
    place = only(checked(site(*variants))).sites[0]
    assert place.params == ("b-x", "b-y")
    assert (place.cases, place.total, place.models) == (2, 3, ("org/hybrid",))


def test_messages_that_differ_in_figures_and_model_names_are_one_cause():
    sites = [
        site(configuration(model, max_num_batched_tokens=tokens), line=tokens)
        for model, tokens in (("org/hybrid", 5000), ("org/dense", 6000))
    ]
    assert len(only(checked(*sites)).sites) == 2


@pytest.mark.parametrize(
    ("candidates", "certainty"),
    [((False,), "certain"), ((False, True), "possible"), ((), None)],
)
def test_a_value_that_is_not_known_counts_with_each_of_its_candidates(candidates, certainty):
    report = checked(site(configuration(enable_chunked_prefill=Unknown("call", "f()", candidates))))
    assert [finding.certainty for finding in report.findings] == ([certainty] if certainty else [])


def test_a_model_is_a_value_like_others():
    models = Unknown("parameter", "model", ("org/hybrid", "org/sizeless"))
    report = checked(site(configuration(models, enable_chunked_prefill=False)))
    assert only(report).certainty == "possible"  # the sizes of one of them are not known
    both = Unknown("parameter", "model", ("org/hybrid", "org/dense"))
    assert only(checked(site(configuration(both, enable_chunked_prefill=False)))).certainty == "possible"


@pytest.mark.parametrize(
    ("doubt", "why"),
    [
        ({"complete": False, "missing": "**kwargs"}, "further keywords are not known"),
        ({"patched": "monkeypatch.setattr(platform)"}, "replaces parts of its environment"),
        ({"seed": Unknown("call", "f()")}, "seed is not known"),
        ({"model": "org/sizeless"}, "the sizes of the model"),
    ],
)
def test_what_is_not_known_makes_a_finding_possible_and_is_named(doubt, why):
    place = only(checked(site(configuration(**{"enable_chunked_prefill": False, **doubt})))).sites[0]
    assert place.certainty == "possible"
    assert why in " ".join(place.why)


def test_alternatives_of_one_run_must_agree():
    one = configuration(enable_chunked_prefill=False, assumed=("x is None",))
    other = configuration(enable_chunked_prefill=True, assumed=("x is not None",))
    assert only(checked(site(one, other))).certainty == "possible"
    same = configuration(enable_chunked_prefill=False, seed=1, assumed=("x is not None",))
    assert only(checked(site(one, same))).certainty == "certain"


def test_configurations_of_a_loop_all_occur():
    report = checked(site(configuration(enable_chunked_prefill=False), configuration(enable_chunked_prefill=True)))
    place = only(report).sites[0]
    assert (place.certainty, place.cases, place.total) == ("certain", 1, 2)


def test_an_open_guard_is_named_and_lowers_nothing():
    guard = Guard("skipif", 'not is_quant_method_supported("experts_int8")', ELSEWHERE)
    place = only(checked(site(configuration(defaults=RUNNER), guards=(guard,)))).sites[0]
    assert place.certainty == "certain"
    assert place.why == ('if this test runs: not is_quant_method_supported("experts_int8")',)


@pytest.mark.parametrize(
    ("kind", "decided", "found"),
    [("skipif", True, 0), ("skip", True, 0), ("xfail", True, 0), ("skipif", False, 1), ("marker", None, 1)],
)
def test_what_does_not_run_is_skipped_and_counted(kind, decided, found):
    report = checked(site(configuration(defaults=RUNNER), guards=(Guard(kind, "x", ELSEWHERE, decided),)))
    assert len(report.findings) == found
    assert (report.coverage.judged, report.coverage.skipped) == (found, 1 - found)


def expecting(match, *exceptions):
    return Negative(exceptions or ("ValueError",), match, ELSEWHERE)


@pytest.mark.parametrize(
    ("match", "exceptions", "certainty"),
    [
        ("[Cc]hunked prefill is required", ("ValueError",), "certain"),
        (r"must be at most \d+", ("ValueError", "RuntimeError"), "certain"),
        ("prompt is too long", ("ValueError",), "possible"),
        ("Chunked prefill is required", ("KeyError",), "possible"),
        (None, ("ValueError",), "possible"),
    ],
)
def test_a_refusal_that_is_expected_and_does_not_come(match, exceptions, certainty):
    found = only(checked(site(configuration(negative=expecting(match, *exceptions)))))
    assert (found.kind, found.certainty) == ("not-refused", certainty)


def test_a_refusal_that_is_expected_and_comes_is_no_finding():
    refused = configuration(enable_chunked_prefill=False, negative=expecting("Chunked prefill"))
    assert checked(site(refused)).findings == ()
    accepted = configuration(enable_chunked_prefill=True, negative=expecting("Chunked prefill"))
    assert only(checked(site(accepted))).kind == "not-refused"


def test_another_refusal_than_the_expected_one_is_possible_only():
    found = only(checked(site(configuration(enable_chunked_prefill=False, negative=expecting("no LoRA")))))
    assert (found.kind, found.certainty) == ("refused-otherwise", "possible")


@pytest.mark.parametrize("chunked", [True, False])
def test_what_a_test_expects_of_a_replaced_engine_says_nothing_of_the_engine_itself(chunked):
    """`monkeypatch.setattr(platform, "is_cuda", ...)` may be all that makes the engine refuse, or refuse this way."""
    expected = configuration(enable_chunked_prefill=chunked, negative=expecting("requires NVIDIA"))
    report = checked(site(replace(expected, patched="setattr(platform, 'is_cuda', no)")))
    assert report.findings == ()
    assert report.coverage.judged == 1
    (found,) = checked(site(expected)).findings
    assert found.kind in {"not-refused", "refused-otherwise"}


def test_crashes_and_unknown_models_are_counted_and_never_found():
    report = checked(
        site(configuration("org/crash"), line=1),
        site(configuration("org/elsewhere"), line=2),
        site(configuration("org/elsewhere", seed=1), line=3),
        site(configuration(Unknown("environment", "MODEL")), line=4),
        site(configuration("org/dense"), line=5),
    )
    assert report.findings == ()
    assert report.coverage.judged == 1
    assert report.coverage.unknown_model == 3
    assert dict(report.coverage.unknown_models) == {"org/elsewhere": 2}
    assert dict(report.coverage.unanswered) == {"ImportError: no torchvision": 1}


def test_equal_questions_are_asked_once():
    engine = FakeEngine()
    check(scan(*(site(configuration("org/dense", seed=n % 2), line=n + 1) for n in range(40))), engine)
    assert len(engine.asked) == 2


def test_true_and_one_are_different_questions():
    engine = FakeEngine()
    check(scan(site(configuration("org/dense", seed=True), configuration("org/dense", seed=1))), engine)
    assert len(engine.asked) == 2


def open_(keyword, **known):
    """A configuration in which one keyword is typed, and its value not known."""
    return configuration(**{keyword: Unknown("call", "str(tmp_path)"), **known})


def test_a_refusal_about_a_keyword_whose_value_is_not_known_is_none():
    """The engine was asked without it: `max_num_batched_tokens must be ...` says nothing of what is typed."""
    asked = open_("max_num_batched_tokens", max_num_seqs=8)

    class Needy(FakeEngine):
        message = "max_num_batched_tokens must be given"

        def answer(self, model, arguments):
            return Rejected("rule", self.message, "x.py:1")

    assert check(scan(site(asked)), Needy()).findings == ()
    (found,) = check(scan(site(open_("seed"))), Needy()).findings
    assert found.certainty == "possible"
    negative = Negative(("ValueError",), "seed", Location("tests/test_a.py", 9, 1))
    assert check(scan(site(replace(asked, negative=negative))), Needy()).findings == ()


def test_an_engine_that_accepts_what_lacks_a_keyword_does_not_accept_what_the_test_expects_to_be_refused():
    negative = Negative(("ValueError",), None, Location("tests/test_a.py", 9, 1))
    bad = replace(open_("dtype"), negative=negative)
    assert check(scan(site(bad)), FakeEngine()).findings == ()
    (found,) = check(scan(site(replace(configuration(), negative=negative))), FakeEngine()).findings
    assert found.kind == "not-refused"


def test_the_own_parameter_of_a_wrapper_that_is_not_read_is_no_unknown_keyword():
    incomplete = replace(configuration(dp_size=2), complete=False, missing="wrapper")
    assert check(scan(site(incomplete, form="wrapper")), FakeEngine()).findings == ()
    (found,) = check(scan(site(configuration(dp_size=2), form="wrapper")), FakeEngine()).findings
    assert "unexpected keyword argument" in found.message
