"""The baseline: stable under edits elsewhere, and only ever smaller."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_engine import FakeEngine, configuration, parametrized, scan, site
from staticfire.harness.check import baseline
from staticfire.harness.check.baseline import Entry
from staticfire.harness.check.run import check
from staticfire.harness.errors import InputError

BAD = configuration(enable_chunked_prefill=False)


def findings(*sites):
    return check(scan(*sites), FakeEngine()).findings


def test_moving_a_call_keeps_it_known(tmp_path):
    baseline.save(tmp_path / "b.json", baseline.count(findings(site(BAD, line=10))))
    known = baseline.load(tmp_path / "b.json")
    left, silenced, stale = baseline.apply(findings(site(BAD, line=77)), known)
    assert (left, len(silenced), stale) == ([], 1, 0)


@pytest.mark.parametrize(
    "other",
    [
        site(BAD, path="tests/other.py"),
        site(BAD, function="test_other"),
        site(configuration(swap_space=4)),
    ],
)
def test_another_file_function_or_cause_is_new(other):
    known = baseline.count(findings(site(BAD)))
    left, _, stale = baseline.apply(findings(other), known)
    assert (len(left), stale) == (1, 1)


def test_a_new_parameter_set_with_an_old_fault_is_new():
    known = baseline.count(findings(site(*parametrized(BAD, a={}))))
    left, silenced, _ = baseline.apply(findings(site(*parametrized(BAD, a={}, b={"seed": 1}))), known)
    assert (len(left), silenced) == (1, [])


def test_a_mended_parameter_set_leaves_the_entry_too_large():
    known = baseline.count(findings(site(*parametrized(BAD, a={}, b={"seed": 1}))))
    left, _, stale = baseline.apply(findings(site(*parametrized(BAD, a={}))), known)
    assert (left, stale) == ([], 1)


ENTRIES = st.dictionaries(st.sampled_from("abcdef"), st.builds(Entry, st.integers(1, 5), st.just("x")))


@given(ENTRIES, ENTRIES)
def test_an_update_never_adds(old, now):
    new = baseline.shrunk(old, now)
    assert set(new) == set(old) & set(now)
    assert all(new[name].cases <= min(old[name].cases, now[name].cases) for name in new)
    assert baseline.shrunk(new, now) == new


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": 2, "findings": {}}', '{"schema": 1, "findings": {"a": {"cases": 0}}}',
     '{"schema": 1, "findings": {"a": {"cases": true}}}', '{"schema": 1, "findings": []}', "[" * 100000],
)  # fmt: skip
def test_what_is_no_baseline_is_said_with_its_name(tmp_path, text):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(InputError, match=r"--baseline .*b\.json"):
        baseline.load(tmp_path / "b.json")


def test_a_missing_baseline_says_how_to_write_one(tmp_path):
    with pytest.raises(InputError, match="--update-baseline"):
        baseline.load(tmp_path / "none.json")


def test_the_file_is_sorted_and_says_what_it_holds(tmp_path):
    baseline.save(tmp_path / "b.json", baseline.count(findings(site(BAD, path="b.py"), site(BAD, path="a.py"))))
    document = json.loads((tmp_path / "b.json").read_text())
    assert list(document["findings"]) == sorted(document["findings"])
    assert all("Chunked prefill" in entry["about"] for entry in document["findings"].values())
