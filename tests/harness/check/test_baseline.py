"""The baseline: stable under edits elsewhere, and only ever smaller."""

import json
import re

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
    (tmp_path / "b.json").write_text(baseline.text(baseline.count(findings(site(BAD, line=10)))))
    known = baseline.load(tmp_path / "b.json")
    left, silenced, stale = baseline.apply(findings(site(BAD, line=77)), known)
    assert (left, len(silenced), stale) == ([], 1, ())


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
    (entry,) = stale
    assert len(left) == 1
    assert re.fullmatch(r"[0-9a-f]{16} gone: refused: Chunked prefill .* \(tests/test_a\.py\)", entry)


def test_a_new_parameter_set_with_an_old_fault_is_new():
    known = baseline.count(findings(site(*parametrized(BAD, a={}))))
    left, silenced, _ = baseline.apply(findings(site(*parametrized(BAD, a={}, b={"seed": 1}))), known)
    assert (len(left), silenced) == (1, [])


def test_a_mended_parameter_set_leaves_the_entry_too_large():
    known = baseline.count(findings(site(*parametrized(BAD, a={}, b={"seed": 1}))))
    left, _, stale = baseline.apply(findings(site(*parametrized(BAD, a={}))), known)
    (entry,) = stale
    assert left == []
    assert " 1 of 2 left: refused: Chunked" in entry


def test_equal_calls_in_one_function_are_counted(tmp_path):
    known = baseline.count(findings(site(BAD, line=3), site(BAD, line=9)))
    assert [entry.cases for entry in known.values()] == [2]
    left, _, stale = baseline.apply(findings(site(BAD, line=30), site(BAD, line=90)), known)
    assert (left, stale) == ([], ())
    left, _, _ = baseline.apply(findings(*(site(BAD, line=n) for n in (3, 9, 27))), known)
    assert [len(finding.sites) for finding in left] == [3]


ENTRIES = st.dictionaries(st.sampled_from("abcdef"), st.builds(Entry, st.integers(1, 5), st.just("x")))


@given(ENTRIES, ENTRIES)
def test_an_update_never_adds(old, now):
    new = baseline.shrunk(old, now)
    assert set(new) == set(old) & set(now)
    assert all(new[name].cases <= min(old[name].cases, now[name].cases) for name in new)
    assert baseline.shrunk(new, now) == new


GOOD = '"a": {"cases": 1, "about": ""}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON: "),
        ("[" * 100000, "no JSON: "),
        ('{"schema": 1', "no JSON: "),
        ("[]", "it must be an object with schema and findings, got []"),
        ("{}", "schema: missing; it must be 1"),
        ("{}", "findings: missing; it must be an object of fingerprints"),
        ('{"schema": 2, "findings": {}}', "schema: must be 1, got 2"),
        ('{"schema": true, "findings": {}}', "schema: must be 1, got true"),
        ('{"schema": 1, "findings": []}', "findings: must be an object of fingerprints, got []"),
        ('{"schema": 1, "findings": null}', "findings: must be an object of fingerprints, got null"),
        ('{"schema": 1, "findings": {"a": 3}}', "findings.a: must be an object with cases and about, got 3"),
        ('{"schema": 1, "findings": {"a": {}}}', "findings.a.cases: missing; it must be a whole number from 1 on"),
        ('{"schema": 1, "findings": {"a": {"cases": 0}}}', "findings.a.cases: must be a whole number from 1 on, got 0"),
        ('{"schema": 1, "findings": {"a": {"cases": true}}}', "a.cases: must be a whole number from 1 on, got true"),
        ('{"schema": 1, "findings": {"a": {"cases": "1"}}}', 'a.cases: must be a whole number from 1 on, got "1"'),
        ('{"schema": 1, "findings": {"a": {"cases": NaN}}}', "a.cases: must be a whole number from 1 on, got NaN"),
        ('{"schema": 1, "findings": {"a": {"cases": 1, "about": 7}}}', "findings.a.about: must be a text, got 7"),
        ('{"schema": 1, "findings": {"a": {"case": 1}}}', "findings.a.case: no such key. Did you mean 'cases'?"),
        (f'{{"schema": 1, "findings": {{{GOOD}, {GOOD}}}}}', "findings.a: stands there twice; keep one"),
        ('{"schema": 1, "schema": 1, "findings": {}}', "schema: stands there twice; keep one"),
    ],
)  # fmt: skip
def test_what_is_no_baseline_is_said_with_its_file_and_key(tmp_path, text, said):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(InputError, match=r"^--baseline .*b\.json: ") as caught:
        baseline.load(tmp_path / "b.json")
    assert said in str(caught.value)
    assert "Error" not in str(caught.value)


def test_every_fault_of_a_baseline_is_listed_up_to_a_limit(tmp_path):
    entries = ", ".join(f'"{n:x}": 0' for n in range(30))
    (tmp_path / "b.json").write_text(f'{{"schema": 2, "findings": {{{entries}}}}}')
    with pytest.raises(InputError) as caught:
        baseline.load(tmp_path / "b.json")
    lines = str(caught.value).splitlines()
    assert len(lines) == 12
    assert lines[-1].strip() == "and 21 more"


def test_a_baseline_may_start_with_a_byte_order_mark(tmp_path):
    (tmp_path / "b.json").write_bytes(b"\xef\xbb\xbf" + f'{{"schema": 1, "findings": {{{GOOD}}}}}'.encode())
    assert baseline.load(tmp_path / "b.json") == {"a": Entry(1, "")}


@given(st.dictionaries(st.text(min_size=1), st.builds(Entry, st.integers(1, 10**9), st.text())))
def test_a_baseline_is_read_as_it_was_written(tmp_path_factory, entries):
    file = tmp_path_factory.getbasetemp() / "b.json"
    file.write_bytes(baseline.text(entries).encode())
    assert baseline.load(file) == entries


def test_a_missing_baseline_says_how_to_write_one(tmp_path):
    with pytest.raises(InputError, match="--update-baseline"):
        baseline.load(tmp_path / "none.json")


def test_the_file_is_sorted_and_says_what_it_holds(tmp_path):
    known = baseline.count(findings(site(BAD, path="b.py"), site(BAD, path="a.py")))
    (tmp_path / "b.json").write_text(baseline.text(known))
    document = json.loads((tmp_path / "b.json").read_text())
    assert list(document["findings"]) == sorted(document["findings"])
    assert all("Chunked prefill" in entry["about"] for entry in document["findings"].values())
