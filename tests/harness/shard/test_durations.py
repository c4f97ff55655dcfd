"""Durations out of JUnit files, ours and pytest's."""

import pytest

from staticfire.harness import junit
from staticfire.harness.errors import InputError
from staticfire.harness.shard import durations

PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="tests.engine.test_llm" name="test_a" time="1.5"/>
<testcase classname="tests.engine.test_llm.TestClass" name="test_b[1]" time="2,000.5"/>
<testcase classname="tests.engine.test_cache" name="test_c" time="0.5"/>
<testcase classname="tests.engine.test_cache" name="test_d" time="9"><skipped message="no GPU"/></testcase>
</testsuite></testsuites>"""


def test_a_file_of_tests_takes_as_long_as_its_cases_without_the_skipped(tmp_path):
    (tmp_path / "a.xml").write_text(PYTEST)
    found = durations.by_file(durations.cases([tmp_path]))
    assert found == {"tests/engine/test_llm.py": 2002.0, "tests/engine/test_cache.py": 0.5}


def test_several_runs_count_by_their_median():
    runs = [[junit.TestCase("cell", seconds=s, report=str(s))] for s in (1.0, 2.0, 30.0)]
    assert durations.by_name([case for run in runs for case in run]) == {"cell": 2.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<testsuites>", "not XML"),
        ("<html/>", "begins with <testsuites>"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><testsuites/>', "declares a document type"),
        ("<?xml version='1.0' encoding='nonsense'?><testsuites/>", "not XML"),
    ],
)
def test_what_is_no_junit_file_is_refused_by_name(tmp_path, text, said):
    file = tmp_path / "x.xml"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as refused:
        junit.read(file)
    assert str(file) in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.*no such"):
        durations.cases([tmp_path / "nowhere"])


@pytest.mark.parametrize("text", ["", "nan", "-1", "inf", "soon"])
def test_a_time_that_means_nothing_is_nothing(text):
    (case,) = junit.parse(f'<testsuite><testcase name="a" time="{text}"/></testsuite>'.encode(), "x")
    assert case.seconds == 0
