"""Repairs: the smallest, verified, and such that what the author wrote is kept where it can be."""

from hypothesis import given
from hypothesis import strategies as st

from fake_engine import FakeEngine, configuration, scan, site
from staticfire.harness.check.base import Change
from staticfire.harness.check.cases import cases
from staticfire.harness.check.repair import apply
from staticfire.harness.check.run import check
from staticfire.harness.check.vocabulary import vocabulary
from staticfire.harness.probe.base import Accepted, Rejected

FLIP, KEEP = Change("enable_chunked_prefill", True), Change("enable_prefix_caching", False)
# A flag that is typed somewhere in the scan is one that a repair may type.
ELSEWHERE = site(configuration("org/dense", enable_prefix_caching=True), line=99)


def repairs(*sites):
    (finding,) = [found for found in check(scan(*sites), FakeEngine()).findings if found.kind == "refused"]
    return finding.repairs


def test_what_the_author_typed_is_kept_where_another_keyword_mends_it():
    assert repairs(site(configuration(enable_chunked_prefill=False)), ELSEWHERE)[:2] == ((KEEP,), (FLIP,))


def test_the_default_of_a_wrapper_is_not_what_the_author_typed():
    assert repairs(site(configuration(defaults={"enable_chunked_prefill": False})), ELSEWHERE)[:2] == ((FLIP,), (KEEP,))


def test_many_sites_share_the_repair_that_costs_least_together():
    wrapped = [site(configuration(defaults={"enable_chunked_prefill": False}, seed=n), line=n + 1) for n in range(3)]
    typed_there = site(configuration(enable_chunked_prefill=False), line=50)
    assert repairs(*wrapped, typed_there, ELSEWHERE)[0] == (FLIP,)


def test_an_unknown_keyword_is_dropped():
    assert repairs(site(configuration(swap_space=4)))[0] == (Change("swap_space", drop=True),)


def test_dropping_falls_back_to_the_default_of_the_wrapper():
    plain = site(configuration("org/dense", defaults={"enable_chunked_prefill": False}), line=1)
    again = site(configuration(enable_chunked_prefill=False), line=2)
    drop = (Change("enable_chunked_prefill", drop=True),)
    assert drop not in repairs(plain, again)


def test_a_value_used_elsewhere_is_proposed_nearest_first():
    others = [site(configuration(max_num_batched_tokens=n), line=n) for n in (512, 1024, 4096)]
    assert repairs(site(configuration(max_num_batched_tokens=8192)), *others)[0] == (
        Change("max_num_batched_tokens", 4096),
    )


def test_a_number_that_the_message_names_is_proposed():
    assert repairs(site(configuration(max_num_batched_tokens=9000)))[0] == (Change("max_num_batched_tokens", 4096),)


def test_two_changes_where_one_is_not_enough():
    bad = configuration(enable_chunked_prefill=False, swap_space=4, enable_prefix_caching=True)
    found = repairs(site(bad))
    assert {len(repair) for repair in found} == {2}
    assert found[0][1] == Change("swap_space", drop=True)


def test_no_repair_is_said_plainly():
    class Stubborn(FakeEngine):
        def answer(self, model, arguments):
            return Rejected("rule", "this device runs no such model", "vllm/platforms/cuda.py:1")

    (finding,) = check(scan(site(configuration())), Stubborn()).findings
    assert finding.repairs == ()


KEYWORDS = {
    "enable_chunked_prefill": st.booleans(),
    "enable_prefix_caching": st.booleans(),
    "max_num_batched_tokens": st.sampled_from([1024, 4096, 8192]),
    "quantization": st.sampled_from(["fp8", "experts_int8"]),
    "dtype": st.sampled_from(["float32", "bfloat16"]),
    "seed": st.integers(0, 2),
    "swap_space": st.just(4),
}


@st.composite
def configurations(draw):
    model = draw(st.sampled_from(["org/hybrid", "org/dense", "org/sizeless"]))
    call = draw(st.fixed_dictionaries({}, optional=KEYWORDS))
    defaults = draw(st.fixed_dictionaries({}, optional={name: KEYWORDS[name] for name in list(KEYWORDS)[:3]}))
    return configuration(model, defaults=defaults, **call)


def suites():
    forms = st.sampled_from(["vllm_runner", "LLM"])
    return st.lists(st.tuples(configurations(), forms), min_size=1, max_size=8).map(
        lambda made: [site(one, line=n + 1, form=form) for n, (one, form) in enumerate(made)]
    )


@given(suites())
def test_every_repair_shown_is_accepted_at_every_site_of_its_finding(sites):
    engine = FakeEngine()
    every = {(case.site.where.line): case for case in cases(scan(*sites))}
    words = vocabulary(every.values())
    for finding in check(scan(*sites), engine).findings:
        if finding.kind != "refused":
            continue
        for place in finding.sites:
            case = every[place.line]
            for repair in finding.repairs:
                arguments = apply(repair, case.variants[0], place.form, words)
                assert isinstance(engine.answer(case.questions[0].model, arguments), Accepted)
                # No part of it is enough: it is the smallest.
                for change in repair if len(repair) > 1 else ():
                    rest = tuple(other for other in repair if other != change)
                    arguments = apply(rest, case.variants[0], place.form, words)
                    assert not isinstance(engine.answer(case.questions[0].model, arguments), Accepted)


@given(suites(), st.randoms(use_true_random=False))
def test_findings_do_not_depend_on_the_order_of_sites(sites, random):
    shuffled = list(sites)
    random.shuffle(shuffled)
    assert check(scan(*sites), FakeEngine()).findings == check(scan(*shuffled), FakeEngine()).findings


@given(suites())
def test_every_refused_case_is_in_exactly_one_finding(sites):
    engine = FakeEngine()
    refused = {
        case.site.where.line
        for case in cases(scan(*sites))
        if isinstance(engine.answer(case.questions[0].model, case.questions[0].arguments), Rejected)
    }
    found = [place.line for one in check(scan(*sites), engine).findings if one.kind == "refused" for place in one.sites]
    assert sorted(found) == sorted(refused)
