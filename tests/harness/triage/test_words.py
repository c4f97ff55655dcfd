"""Every refusal is recognised in a log, ours and vLLM's, however it is wrapped, coloured, prefixed or cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.config import resolve
from staticfire.engine.config.errors import ConfigError, Fault
from staticfire.engine.config.release import RELEASES
from staticfire.engine.config.rules.examples import DEVICES, example_model
from staticfire.engine.config.rules.registry import RULES
from staticfire.harness.triage import logs
from staticfire.harness.triage.causes import cause, headline, signs
from staticfire.harness.triage.words import rule_of
from vllm_messages import SAID

BY_EXAMPLE = "SF501"  # each option has words of its own; this engine always adds the code
UNSAID = {"SF108", "SF205", "SF303", "SF306", "SF308", "SF309", "SF310", "SF401", "SF406", "SF501", "SF504", "SF508"}
"""vLLM refuses none of these, or only in words that it has for anything (`10 is not divisible by 3`)."""
said = st.sampled_from(SAID)


def own(rule):
    example = rule.example
    device, release = DEVICES[example.device], RELEASES[example.release]
    return resolve(example.typed, example_model(example.model), device, release)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_our_engine_is_understood_with_its_code_and_without(rule):
    resolution = own(rule)
    fault = [*resolution.violations, *resolution.limits][0]
    assert len(resolution.violations) + len(resolution.limits) == 1
    assert rule_of(fault.message) == ("" if rule.code == BY_EXAMPLE else rule.code)
    error = ConfigError([Fault(fault.name, "x", fault.message, fault.code, chain=fault.chain)])
    assert cause(f"staticfire.engine.config.errors.ConfigError: {error}").rule == rule.code
    (told,) = logs.read(f"staticfire.engine.config.errors.ConfigError: {error}\n", "a.log")
    assert cause(told.message).rule == rule.code


def test_every_refusal_of_vllm_is_known_but_those_that_it_has_no_words_for():
    assert {one.rule for one in SAID} == {rule.code for rule in RULES} - UNSAID
    assert all(len(rule.says) == 1 for rule in RULES if rule.code in UNSAID - {"SF108", BY_EXAMPLE})


@pytest.mark.parametrize("one", SAID, ids=lambda one: one.rule)
def test_vllm_is_understood(one):
    assert rule_of(one.text) == one.rule


def pydantic(text):
    return (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
        f"  Value error, {text} [type=value_error, input_value=ArgsKwargs((), {{'a': None}}), input_type=ArgsKwargs]\n"
        "    For further information visit https://errors.pydantic.dev/2.12/v/value_error"
    )


@pytest.mark.parametrize("one", SAID, ids=lambda one: one.rule)
@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "2026-11-30T10:00:01.123456789+00:00 ",
        "[2026-11-30T10:00:01Z] ",
        "(EngineCore_DP0 pid=123) ERROR 11-30 10:00:01 [core.py:700] ",
        "\x1b[1;36m(EngineCore_DP0 pid=123)\x1b[0;0m ERROR 11-30 10:00:01 [v1/engine/core.py:700] ",
        "\x1b[36m(RayWorkerWrapper pid=9, ip=10.0.0.7)\x1b[0m ",
        "(APIServer pid=1) (Worker_TP1 pid=77) ERROR 11-30 10:00:01 [multiproc_executor.py:8] ",
        "[rank1]: ",
        "vllm-server-1  | ",
    ],
)
def test_it_is_found_in_a_log_behind_any_prefix(one, prefix):
    bare = one.text.startswith("assert ")
    for lines in (
        ([f"    {one.text}", "AssertionError"],)
        if bare
        else ([f"ValueError: {one.text}"], pydantic(one.text).splitlines())
    ):
        told = logs.read(
            "".join(f"{prefix}{line}\n" for line in ["Traceback (most recent call last):", *lines]), "a.log"
        )
        assert [cause(failure.message).rule for failure in told] == [one.rule]


@given(said, st.integers(60, 120))
def test_it_is_found_wherever_a_terminal_wraps_it(one, width):
    text = f"ValueError: {one.text}"
    wrapped = "\n".join(text[at : at + width] for at in range(0, len(text), width))
    assert rule_of(wrapped) == one.rule
    first = logs.read(wrapped, "a.log")
    assert [cause(failure.message).rule for failure in first] == [one.rule]


@given(said, st.data())
def test_where_it_is_cut_it_is_that_rule_or_none(one, data):
    cut = one.text[: data.draw(st.integers(0, len(one.text)))]
    assert rule_of(f"{cut}...") in {one.rule, ""}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("AssertionError: Chunked prefill is required for mamba c...", "SF101"),
        ("ValueError: max_num_batched_tokens (2048) is sma…", "SF201"),
        ("ValueError: max_num_batched_tokens (2048) must be gre...", "SF202"),
        ("ValueError: max_num_batched_tokens (20...", ""),  # of two rules
        ("AssertionError: Chunked...", ""),
        ("ValueError: SF999 is no rule", ""),
        ("AssertionError: 10 is not divisible by 3", ""),
        ("ValueError: max_num_seqs=256 is above the 200 blocks of the pool", "SF110"),
    ],
)
def test_a_summary_is_believed_as_far_as_it_goes(text, code):
    assert rule_of(text) == code


def test_what_pydantic_and_our_engine_only_count_is_no_cause():
    one, other = pydantic("first thing"), pydantic("another thing")
    assert cause(one) != cause(other)
    assert headline(one) == "first thing"
    assert headline("x.ConfigError: Configuration refused: 1 fault\n  unknown-option: no keyword 'modle'") == (
        "unknown-option: no keyword 'modle'"
    )


@pytest.mark.parametrize(
    "line", ["- generated xml file: a.xml -", "!!! stopping after 1 failures !!!", "==== 1 failed ===="]
)
def test_what_pytest_says_next_is_no_part_of_a_message(line):
    assert logs.read(f"ValueError: boom\n{line}\n", "a.log")[0].message == "ValueError: boom"


@pytest.mark.parametrize(
    "following",
    [
        "(EngineCore_DP0 pid=1) INFO 11-30 10:00:02 [core.py:9] Connection reset by peer, connecting again",
        "Connection reset by peer",
        "INFO 11-30 10:00:02 [core.py:9] SF101 is a rule",
    ],
)
@pytest.mark.parametrize("prefix", ["", "(EngineCore_DP0 pid=1) ERROR 11-30 10:00:01 [core.py:7] "])
def test_what_is_logged_next_is_no_part_of_a_message(prefix, following):
    (told, *_) = logs.read(f"{prefix}ValueError: boom\n{following}\n", "a.log")
    assert told.message == "ValueError: boom"
    assert not cause(told.message).infrastructure


def test_a_bare_assertion_is_told_by_its_statement():
    log = 'Traceback:\n  File "/a/b.py", line 3\n    assert {}\n    ^^^^^^\nAssertionError\n'
    one, other = (logs.read(log.format(statement), "a.log") for statement in ("x > 1", "y > 1"))
    assert one[0].message == "AssertionError: assert x > 1"
    assert cause(one[0].message) != cause(other[0].message)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        *((line, "lost agent") for line in ("the agent was lost", "Agent lost", "exited with status -1", "agent_stop")),
        *((line, "disk full") for line in ("No space left on device", "Disk quota exceeded")),
        ("Temporary failure in name resolution", "name resolution"),
        ("curl: (6) Could not resolve host: x", "name resolution"),
        ("Name or service not known", "name resolution"),
        ("Connection timed out", "network"),
        ("Read timed out. (read timeout=10)", "network"),
        ("requests.exceptions.ConnectTimeout", "network"),
        ("http.client.RemoteDisconnected", "network"),
        ("TLS handshake timeout", "network"),
        ("Max retries exceeded with url", "network"),
        ("fatal: unable to access 'https://x/'", "network"),
        *((f"{code} Server Error: x", "remote service") for code in (502, 503, 504)),
        ("HTTP status code: 503", "remote service"),
        ("toomanyrequests: rate", "container image"),
        ("Error response from daemon: x", "container image"),
        ("failed to pull image x", "container image"),
        ("manifest unknown", "container image"),
        *((line, "device") for line in ("CUDA driver initialization failed", "NVRM: Xid (PCI:0): 79", "ECC error")),
        ("Unable to determine the device handle", "device"),
        ("CUDA unknown error - this may be", "device"),
        ("NVML: Driver/library version mismatch", "device"),
    ],
)
def test_every_sign_of_a_machine_is_seen(line, name):
    assert signs(line)[0] == name
    assert signs(line.upper())[0] == name
    assert signs(f"AssertionError: {line}") == []
