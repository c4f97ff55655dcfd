"""Annotations: below the limit in bytes whatever failed, the counts always there, nothing taken for markup."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.harness.pipeline.limits import ANNOTATION_BYTES
from staticfire.harness.triage import markdown
from staticfire.harness.triage.base import Failure, Seen, Triage
from staticfire.harness.triage.group import triage
from staticfire.harness.triage.markdown import Progress

DONE = Progress("hybrid", 3, 3, final=True)


def grouped(*failures):
    return triage([Seen("a.xml", 99, failures)], lambda _: None)


def test_four_hundred_failures_of_five_kilobytes_fit_and_are_counted():
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    messages = [" ".join(words[int(digit)] for digit in f"{number:03}") + " ü" * 1200 for number in range(400)]
    found = grouped(*(Failure(f"test_{n}" + "ü" * 150, message) for n, message in enumerate(messages)))
    assert len(found.groups) == 400
    small = markdown.render(found, DONE, 20_000)
    assert len(small.encode()) <= 20_000
    shown = small.count("<details")
    assert f"{400 - shown} more causes ({400 - shown} failures) did not fit" in small
    whole = markdown.render(found, DONE)
    assert len(whole.encode()) <= ANNOTATION_BYTES
    assert whole.count("<details") == 400


@settings(max_examples=60)
@given(st.lists(st.text(max_size=60), max_size=12), st.integers(1500, 6000))
def test_it_is_below_any_limit_and_the_heading_is_in_it(messages, most):
    found = grouped(*(Failure(f"t{n}", message) for n, message in enumerate(messages)))
    text = markdown.render(found, DONE, most)
    assert len(text.encode()) <= most
    assert text.startswith("**hybrid: ")


@pytest.mark.parametrize("less", [0, 1])
def test_at_the_limit_a_cause_is_in_and_one_byte_below_it_is_counted(less):
    found = grouped(Failure("t", "ü" * 100))
    whole = len(markdown.render(found, DONE).encode())
    text = markdown.render(found, DONE, whole + 512 - less)
    assert ("did not fit" in text) == bool(less)


def test_nothing_in_a_message_is_markup():
    text = markdown.render(grouped(Failure("t`<b>", "<script>alert(1)</script> **[x](y)** $HOME\x1b[31m")), DONE)
    assert "<script>" not in text
    assert "\x1b" not in text
    assert set(re.findall(r"<(/?\w+)", text)) <= {
        "details",
        "/details",
        "summary",
        "/summary",
        "b",
        "/b",
        "code",
        "/code",
    }


def test_as_long_as_shards_are_missing_it_says_how_many_and_at_the_end_that_is_a_failure():
    none = Triage((), 9, 1)
    running, ended = Progress("m", 1, 3), Progress("m", 1, 3, final=True)
    assert "1 of 3 shards reported so far" in markdown.render(none, running)
    assert markdown.style(none, running) == "info"
    assert "2 shards of 3 never reported" in markdown.render(none, ended)
    assert markdown.style(none, ended) == "error"
    assert markdown.style(none, Progress("m", 3, 3, final=True)) == "success"


def test_a_machine_is_a_warning_and_the_product_an_error():
    assert markdown.style(grouped(Failure("t", "No space left on device")), DONE) == "warning"
    assert markdown.style(grouped(Failure("t", "ValueError: x")), DONE) == "error"


def test_a_failure_has_its_command_and_a_link_to_its_report():
    failure = Failure(
        "t", "ValueError: x", report="staticfire-report/hybrid/1/junit.xml", rerun="staticfire run x --cell t"
    )
    text = markdown.render(grouped(failure), DONE)
    assert "staticfire run x" in text
    assert 'href="artifact://staticfire&#45;report/hybrid/1/junit.xml"' in text
