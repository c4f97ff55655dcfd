"""Certainty only falls as less is known, and says what every value of the unknown says."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fake_engine import FakeEngine, configuration, scan, site, typed
from staticfire.harness.check.messages import normalise
from staticfire.harness.check.run import check
from staticfire.harness.scan.base import Unknown

VALUES: dict[str, list[Any]] = {
    "enable_chunked_prefill": [False, True],
    "enable_prefix_caching": [False, True],
    "max_num_batched_tokens": [1024, 8192],
}
MODELS = ["org/hybrid", "org/dense"]


def certain(*configurations):
    findings = check(scan(site(*configurations)), FakeEngine()).findings
    sure = [one for one in findings if one.kind == "refused" and one.certainty == "certain"]
    return {normalise(one.message, one.sites[0].models[0]) for one in sure}


@st.composite
def known(draw):
    return configuration(
        draw(st.sampled_from(MODELS)), **{name: draw(st.sampled_from(values)) for name, values in VALUES.items()}
    )


@given(known(), st.sampled_from([*VALUES, "model"]), st.booleans())
def test_forgetting_a_value_makes_nothing_certain_that_was_not(one, name, candidates):
    choices = tuple(MODELS if name == "model" else VALUES[name]) if candidates else ()
    unknown = Unknown("call", name, choices)
    if name == "model":
        vague = replace(one, model=unknown)
    else:
        vague = replace(one, keywords={**one.keywords, name: typed(unknown)})
    assert certain(vague) <= certain(one)


@given(known())
def test_an_incomplete_site_is_never_certain(one):
    assert certain(replace(one, complete=False, missing="**kwargs")) == set()


@given(st.lists(known(), min_size=1, max_size=4))
def test_alternatives_are_certain_only_together(each):
    alternatives = [replace(one, assumed=(str(number),)) for number, one in enumerate(each)]
    together = certain(*alternatives)
    assert all(together <= certain(one) for one in each)


@given(st.lists(known(), min_size=1, max_size=4), known())
def test_another_site_takes_nothing_away(each, more):
    alone = check(scan(*(site(one, line=n + 1) for n, one in enumerate(each))), FakeEngine())
    both = check(scan(*(site(one, line=n + 1) for n, one in enumerate([*each, more]))), FakeEngine())

    def places(report):
        return {
            (str(place), finding.message)
            for finding in report.findings
            for place in finding.sites
            if place.certainty == "certain" and place.line <= len(each) and finding.kind == "refused"
        }

    assert places(alone) == places(both)
