"""Repairs: the smallest, verified, and such that what the author wrote is kept where it can be."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_engine import FakeEngine, configuration, parametrized, scan, site
from staticfire.harness.check import repair as search
from staticfire.harness.check.base import Change
from staticfire.harness.check.cases import cases
from staticfire.harness.check.formats.base import which
from staticfire.harness.check.formats.registry import FORMATS
from staticfire.harness.check.question import Question, UnknownModel
from staticfire.harness.check.repair import apply
from staticfire.harness.check.run import Options, check
from staticfire.harness.check.vocabulary import vocabulary
from staticfire.harness.probe.base import Accepted, Rejected
from staticfire.harness.scan.base import Unknown

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


def renamed(old, new):
    return Change(new, old=old)


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ({"max_modl_len": 1024}, renamed("max_modl_len", "max_model_len")),
        ({"tensor_parallel": 2}, renamed("tensor_parallel", "tensor_parallel_size")),
        ({"sed": 7}, renamed("sed", "seed")),
        # The value of another keyword does not fit: what is typed was no misspelling of it.
        ({"max_num_batch_tokens": 8192}, Change("max_num_batch_tokens", drop=True)),
        ({"dtypes": "half", "dtype": "auto"}, Change("dtypes", drop=True)),
        ({"swap_space": 4}, Change("swap_space", drop=True)),
    ],
)
def test_a_misspelt_keyword_is_renamed_where_its_value_fits_and_dropped_otherwise(typed, fix):
    found = repairs(site(configuration("org/dense", **typed)))
    assert found[0] == (fix,)
    assert all(not change.old for mend in found[1:] for change in mend)


def test_one_misspelling_is_one_finding_whatever_the_values_are():
    sites = [site(configuration("org/dense", max_modl_len=length), line=length) for length in (512, 1024)]
    assert repairs(*sites)[0] == (renamed("max_modl_len", "max_model_len"),)


def test_a_misspelt_default_of_a_wrapper_is_renamed():
    assert repairs(site(configuration("org/dense", defaults={"max_modl_len": 512})))[0][0].old == "max_modl_len"


def test_two_misspelt_keywords_are_both_renamed():
    mends = repairs(site(configuration("org/dense", max_modl_len=512, dtyp="half")))
    assert mends[0] == (renamed("dtyp", "dtype"), renamed("max_modl_len", "max_model_len"))


def test_a_renamed_flag_keeps_its_value_and_the_other_words():
    one = configuration("org/dense", seed=1, max_modl_len=512)
    (case,) = cases(scan(site(one)))
    mend = (renamed("max_modl_len", "max_model_len"),)
    assert apply(mend, case.variants[0], "LLM", vocabulary([case])) == {"seed": 1, "max_model_len": 512}
    question = Question("m", {"seed": 1, "max_modl_len": 512}, "serve", argv=("--max-modl-len=512", "--seed", "1"))
    assert question.replaced({"seed": 1, "max_model_len": 512}).argv == ("--seed", "1", "--max-model-len", "512")


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


class Lengths(FakeEngine):
    """Takes whole numbers from 1 on as `max_model_len`, and no `seed` beside them."""

    def answer(self, model, arguments):
        length = arguments.get("max_model_len")
        faults = []
        if length is not None and (isinstance(length, str | float) or length < 1):
            faults.append(f"int_type: max_model_len={length!r} should be a whole number greater than 0")
        if "seed" in arguments:
            faults.append("unknown-option: 'seed' is no keyword from 0.27.1 to 0.33.0")
        if faults:
            text = "\n  ".join([f"Configuration refused: {len(faults)} fault{'s' if len(faults) > 1 else ''}", *faults])
            return Rejected("rule", text, "int_type")
        return Accepted({}, {})


def of(*sites, engine):
    (finding,) = [found for found in check(scan(*sites), engine).findings if found.kind == "refused"]
    return finding


LENGTH_DROPPED = Change("max_model_len", drop=True)


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("4k", Change("max_model_len", 4000)),
        ("4K", Change("max_model_len", 4096)),
        ("4096", Change("max_model_len", 4096)),
        (4096.0, Change("max_model_len", 4096)),
        ("long", LENGTH_DROPPED),
        (-1, LENGTH_DROPPED),
        (float("nan"), LENGTH_DROPPED),
        (float("inf"), LENGTH_DROPPED),
    ],
)
def test_a_value_is_read_as_what_it_means_before_it_is_dropped(typed, first):
    others = [site(configuration(max_model_len=n), line=n) for n in (2, 64)]
    assert of(site(configuration(max_model_len=typed)), *others, engine=Lengths()).repairs[0] == (first,)


def test_a_count_of_faults_is_no_value_to_try():
    finding = of(site(configuration(max_model_len="long", seed=1)), engine=Lengths())
    assert finding.repairs == ((LENGTH_DROPPED, Change("seed", drop=True)),)


def test_alternatives_differ_in_more_than_a_figure():
    others = [site(configuration(max_model_len=n), line=n) for n in (2, 64, 128, 512)]
    finding = of(site(configuration(max_model_len=-1)), *others, engine=Lengths())
    assert finding.repairs == ((LENGTH_DROPPED,), (Change("max_model_len", 2),))


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
    # Both values of the four flags that are always tried; the message speaks of no keyword, so there are no pairs.
    assert finding.searched == "8 single changes and 0 pairs tried"


class Never(FakeEngine):
    """Refuses everything, each seed for a cause of its own."""

    def answer(self, model, arguments):
        if model == "org/slow":
            return UnknownModel(model)
        letter = chr(97 + arguments.get("seed", 0) % 26)
        return Rejected("rule", f"no {letter} with block_size", "vllm/x.py:1")


def test_a_search_that_was_not_finished_says_so(monkeypatch):
    names = ["block_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "quantization", "dtype"]

    def full(model, number, **more):
        keywords: dict[str, Any] = dict.fromkeys(names, number)
        return configuration(model, **keywords, **more)

    many = [site(full("org/slow", n), line=n) for n in range(1, 20)]
    broken = site(full("org/hybrid", 1, seed=0), line=99)
    (finding,) = check(scan(broken, *many), Never()).findings
    assert re.fullmatch(r"\d+ single changes and 120 of [\d,]+ pairs tried, .*", finding.searched)

    monkeypatch.setattr(search, "MAX_QUESTIONS", 10)
    first, second = check(scan(*(site(configuration(seed=n), line=n + 1) for n in range(2))), Never()).findings
    assert "pairs tried" in first.searched
    assert second.searched == "none was searched for: this check has spent the 10 questions that it has for repairs"


def test_what_is_only_possible_is_searched_less_and_says_so():
    doubtful = configuration(seed=0, block_size=16, quantization=Unknown("call", "f()"))
    (finding,) = check(scan(site(doubtful)), Never()).findings
    assert re.fullmatch(r"\d+ single changes? tried, and no pairs, for it is possible only", finding.searched)


HUGE = st.sampled_from(
    [10**400, 10**4000, -(10**4000), 16**5000, float("nan"), float("inf"), -float("inf"), 1e308, 2**63, [16**5000]]
)


@given(st.lists(HUGE | st.integers(-2, 3), min_size=1, max_size=6), st.sampled_from(list(FORMATS)))
def test_numbers_of_any_size_end_in_a_report(numbers, form):
    sites = [site(configuration(max_model_len=n, max_num_seqs=n), line=i + 1) for i, n in enumerate(numbers)]
    report = check(scan(*sites), Lengths(), Options(redundant=True))
    for finding in report.findings:
        assert all(abs(change.value or 0) < 2**63 for mend in finding.repairs for change in mend)
    text = FORMATS[form].render(report)
    if form in {"json", "sarif"}:
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_number_that_cannot_be_put_to_an_engine_is_counted_with_its_reason():
    report = check(scan(site(configuration(max_model_len=16**5000))), Lengths())
    assert report.findings == ()
    (case,) = cases(scan(site(configuration(max_model_len=16**5000))))
    assert case.variants[0].open == (
        "max_model_len is not known (a number of more than 4,000 digits, which cannot be put to an engine)",
    )


def test_a_site_with_very_many_parameter_sets_says_how_many_were_tried():
    made = parametrized(configuration(), **{str(n): {"max_model_len": -n} for n in range(1, 4)})
    finding = of(site(*made, truncated=19_997), engine=Lengths())
    assert which(finding.sites[0]).startswith("3 of 20,000 parameter sets (3 were tried)")


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
