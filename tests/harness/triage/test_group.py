"""Groups: one cause in one group whatever varies, machines apart from the product, news against a baseline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.triage.base import Failure, Seen, retried
from staticfire.harness.triage.causes import cause, infrastructure
from staticfire.harness.triage.group import RuleFacts, triage

FOUNDING = "AssertionError: Chunked prefill is required for mamba cache mode 'align'."


def rules(code):
    return RuleFacts("align-without-chunked-prefill", "why", "allow chunked prefill") if code == "SF101" else None


def grouped(*failures, baseline=None):
    return triage([Seen("a.xml", 10, failures)], rules, baseline=baseline)


@pytest.mark.parametrize(
    "message",
    [
        FOUNDING,
        "Chunked prefill is required for Mamba prefix caching.",
        "refused unexpectedly (SF101): mamba_cache_mode=align needs chunked prefill, but enable_chunked_prefill=False",
    ],
)
def test_a_rule_is_one_cause_in_the_words_of_any_engine(message):
    assert cause(message).rule == "SF101"
    assert cause(message).key == "rule:SF101"


def test_a_report_that_names_the_rule_is_believed():
    assert cause("refused", "SF401").key == "rule:SF401"


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("OSError: [Errno 28] No space left on device", "disk full"),
        ("requests.exceptions.HTTPError: 429 Client Error: Too Many Requests", "remote service"),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "network"),
        ("RuntimeError: No CUDA-capable device is detected", "device"),
        ("ValueError: Free memory on device cuda:0 (3.1/79.1 GiB) on startup is less than desired", "device memory"),
        ("The agent was lost", "lost agent"),
        ("AssertionError: expected 'Connection reset by peer'", ""),
        ("assert 'No space left on device' in told", ""),
        ("ValueError: block_size must be a multiple of 16", ""),
    ],
)
def test_machines_are_told_from_the_product(message, name):
    assert infrastructure(message).startswith(name)
    assert bool(infrastructure(message)) == bool(name)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 2**40))
def test_numbers_paths_and_addresses_make_no_other_cause(one, other, address):
    first = f"ValueError: got {one} tokens in /tmp/{one}/x at {address:#x}"
    second = f"ValueError: got {other} tokens in /srv/y at {one:#x}"
    assert cause(first) == cause(second)
    assert cause(first) != cause(first.replace("tokens", "blocks"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "worker 'gw0' crashed while running 'tests/test_a.py::test_x[1]'",
            "worker 'gw3' crashed while running 'tests/b/test_b.py::test_y'",
        ),
        ("Failed: Timeout (>300.0s) from pytest-timeout.", "Failed: Timeout (>5.5s) from pytest-timeout."),
        ("RuntimeError: 1.5 GiB is less than 3GiB", "RuntimeError: 20 GiB is less than 31.25GiB"),
        ("KeyError: 'req-1a2b3c4d'", "KeyError: 'req-00ff00ff'"),
        (
            "ValueError: 550e8400-e29b-41d4-a716-446655440000 is unknown",
            "ValueError: 00000000-aaaa-41d4-b716-4466554400ff is unknown",
        ),
        ("RuntimeError: EngineCore_DP0 on rank1 died", "RuntimeError: EngineCore_DP1 on rank0 died"),
    ],
)
def test_workers_ranks_ids_and_measures_make_no_other_cause(one, other):
    assert cause(one) == cause(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ValueError: fp8 is not supported", "ValueError: fp16 is not supported"),
        ("KeyError: 'facade'", "KeyError: 'defaced'"),
    ],
)
def test_names_stay_names(one, other):
    assert cause(one) != cause(other)


def test_failures_with_one_cause_are_one_group_with_the_rule_and_its_fix():
    found = grouped(*(Failure(f"test_{n}", FOUNDING) for n in range(3)), Failure("x", "ValueError: no"))
    assert [(group.rule, len(group.failures)) for group in found.groups] == [
        ("SF101 align-without-chunked-prefill", 3),
        ("", 1),
    ]
    assert found.groups[0].repair == "allow chunked prefill"
    assert not found.groups[0].verified
    assert found.last_line == "4 failures of 10: 2 root causes"


MESSAGES = st.sampled_from([FOUNDING, "ValueError: a", "ValueError: b", "No space left on device", "KeyError: 3"])


@given(st.lists(MESSAGES, max_size=8), st.randoms())
def test_every_failure_is_in_one_group_in_whatever_order(messages, random):
    failures = [Failure(f"t{number}", message) for number, message in enumerate(messages)]
    shuffled = list(failures)
    random.shuffle(shuffled)
    one, other = grouped(*failures), grouped(*shuffled)
    assert sorted(failure.id for group in one.groups for failure in group.failures) == sorted(f.id for f in failures)
    assert [group.key for group in one.groups] == [group.key for group in other.groups]
    assert {failure.message for failure in retried(one.groups)} <= {"No space left on device"}


def test_a_test_that_its_log_and_its_report_tell_of_counts_once():
    log = Failure("t", "ValueError: a", report="a.log", line=3)
    report = Failure("t", "ValueError: a", report="a.xml")
    assert grouped(log, report).groups[0].failures == (report,)


def test_a_baseline_tells_what_is_new_known_and_gone():
    before = [group.key for group in grouped(Failure("a", "ValueError: a"), Failure("b", "ValueError: b")).groups]
    found = grouped(Failure("c", "ValueError: a"), Failure("d", FOUNDING), baseline=before)
    assert [(group.title, group.new) for group in found.groups] == [(FOUNDING, True), ("ValueError: a", False)]
    assert len(found.resolved) == 1
    assert found.last_line.endswith("2 root causes; 1 new")


def test_the_title_does_not_say_the_rule_again():
    message = (
        "x.ConfigError: Configuration refused: 1 fault\n  SF101 align-without-chunked-prefill: mode=align, but\n    y"
    )
    (group,) = grouped(Failure("a", message)).groups
    assert (group.rule, group.title) == ("SF101 align-without-chunked-prefill", "mode=align, but")


def test_nothing_failed():
    assert grouped().last_line == "no failure of 10 in 1 report"
