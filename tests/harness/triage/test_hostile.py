"""Whatever a build leaves behind: triage reads it, or says that it is no report; it never fails."""

import json
import time

from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness import junit
from staticfire.harness.errors import InputError
from staticfire.harness.triage import logs, markdown, text
from staticfire.harness.triage.base import Failure, Seen
from staticfire.harness.triage.causes import cause, unraised
from staticfire.harness.triage.group import triage

PIECES = st.sampled_from(
    [
        *(
            "FAILED ",
            "ERROR ",
            "a/b.py::",
            "test_x[",
            "]",
            " - ",
            "E   ",
            "AssertionError: ",
            "SF101",
            "\n",
            "\x1b[31m",
        ),
        *(
            "___ test_x ___",
            "===",
            "\x1b_bk;t=1\x07",
            "2026-11-30T10:00:00Z ",
            "(EngineCore pid=1) ",
            "ERROR 11-30 [a:1] ",
        ),
        *("Engine core initialization failed", "No space left on device", "agent lost", "\r", "\t", "é", "\ud7ff"),
    ]
)
LOGS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("".join)


@given(LOGS)
def test_any_log_is_read_and_shown(log):
    found = triage([Seen("a.log", 0, logs.read(log, "a.log"))], lambda _: None)
    assert (
        len({failure.id for group in found.groups for failure in group.failures}) <= max(1, len(log.splitlines())) + 9
    )
    json.loads(text.document(found))
    shown = text.render(found) + markdown.render(found, markdown.Progress("x", 1, 1))
    assert "\x1b" not in shown
    assert "\x07" not in shown


@given(st.binary(max_size=200) | LOGS.map(lambda log: f"<testsuite>{log}</testsuite>".encode()))
def test_any_file_is_a_report_or_refused_by_name(content):
    said = "a.xml: "
    cases: tuple[junit.TestCase, ...] = ()
    try:
        cases = junit.parse(content, "a.xml")
    except InputError as error:
        said = str(error)
    assert said.startswith("a.xml: ")
    assert all(case.seconds >= 0 for case in cases)


@given(st.text(max_size=200))
def test_any_message_has_one_cause(message):
    assert cause(message) == cause(message)
    assert cause(message).key
    assert len(unraised(message)) <= 300


def test_a_log_of_a_hundred_thousand_lines_is_read_in_seconds():
    line = (
        "(EngineCore_DP0 pid=12) INFO 11-30 10:00:01 [core.py:700] Avg generation throughput: 12.3 tokens/s " + "x" * 80
    )
    long = "FAILED tests/test_a.py::test_it[" + "a" * 20_000 + "] - AssertionError: " + "child process " * 2_000
    log = "\n".join([line] * 100_000 + [long, "_" * 50_000, "E   " + "a." * 20_000])
    start = time.process_time()
    found = logs.read(log, "a.log")
    assert time.process_time() - start < 30
    assert len(found) == 1


def test_many_failures_are_grouped_in_seconds():
    failures = tuple(Failure(f"t{n}", f"ValueError: {n} of {n % 7} at /tmp/{n}/x") for n in range(20_000))
    start = time.process_time()
    found = triage([Seen("a", 20_000, failures)], lambda _: None)
    assert time.process_time() - start < 30
    assert len(found.groups) == 1
