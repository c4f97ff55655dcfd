"""The contract of an engine that is found by its shape: a small vLLM under other names, sound and with faults."""

import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

import toy_contract
from staticfire.harness.errors import InputError
from staticfire.harness.probe.vllm.process import Limits
from staticfire.harness.sync.contract.audit import Accepted, audit
from staticfire.harness.sync.contract.base import LEFT_OUT, Finding, Report
from staticfire.harness.sync.contract.text import as_json, render
from staticfire.harness.sync.contract.vllm import VllmSubject

QUICK = Limits(start=60, question=2)
LENGTHENED = toy_contract.MESSAGE + "\n    def __post_init__(self):\n        self.longest += 1\n"


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def one(fault: str | None = None, message: str = toy_contract.MESSAGE, **options: Any) -> Report:
        toy_contract.write(tmp_path, fault, message)
        subject = VllmSubject(sys.executable, QUICK)
        try:
            return audit(subject, **{"examples": 15, **options})
        finally:
            subject.close()

    return one


@pytest.fixture(autouse=True)
def no_process_is_left() -> Any:
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before


def of(report: Report, rule: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == rule]


def test_the_response_and_what_applies_it_are_found_whatever_they_are_called(hold):
    about = hold().about
    assert about.engine == "vllm 9.9"
    assert about.response == "Verdict"
    assert about.applies == "Desk.take"
    assert about.defined_at == "vllm/message.py:5"
    assert about.applied_at.startswith("vllm/desk.py:")
    assert about.key == "rank"
    assert "everything.pages.state_tokens" in about.settable
    assert "everything.pages.count" not in about.settable, "the constructor does not take it"


def test_a_sound_front_end_holds_and_its_rules_are_read_off(hold):
    report = hold()
    assert report.findings == ()
    assert len(report.tried) == 7
    assert all(one.examples >= 15 for one in report.tried)
    assert not any(one.untried for one in report.tried)
    assert report.merges == {
        "longest": "the smallest",
        "count": "added up",
        "tokens": "refused where they differ",
        "state_tokens": "the largest",
        "address": "refused where they differ",
        "color": "not read",
    }
    assert "takes nothing over from color" in report.notes[0]
    assert render(report).splitlines()[-1].startswith("Holds: 7 properties, ")


def test_a_none_that_erases_is_shown_in_its_smallest_form(hold):
    report = hold("none erases")
    (erased,) = of(report, "none-after-value")
    example = erased.example
    assert erased.field == "state_tokens"
    assert example.messages == ((0, {"state_tokens": 1056}), (1, {"state_tokens": None}))
    assert example.ends == {"everything.pages.state_tokens": None}
    assert example.otherwise == {"everything.pages.state_tokens": 1056}
    assert example.typed == {}
    (missing,) = of(report, "missing-field")
    assert missing.example.messages == ((0, {"state_tokens": 1056}), (1, {"state_tokens": LEFT_OUT}))
    assert missing.example.ends == {"everything.pages.state_tokens": None}
    assert missing.example.otherwise == {"everything.pages.state_tokens": 1056}
    assert "engine 1 leaves out state_tokens" in render(report)
    assert [finding.field for finding in of(report, "arrival-order")] == ["state_tokens"]
    assert of(report, "re-delivery") == []


def test_the_line_of_a_finding_reads_the_field(hold, tmp_path):
    (erased,) = of(hold("none erases"), "none-after-value")
    path, _, line = erased.where.rpartition(":")
    assert "verdict.state_tokens" in (tmp_path / path).read_text().splitlines()[int(line) - 1]


def test_the_last_to_answer_is_seen_in_the_order_and_in_the_disagreement(hold):
    report = hold("last wins")
    assert report.merges["tokens"] == "the last to answer wins"
    assert {(finding.rule, finding.field) for finding in report.findings} == {
        ("arrival-order", "tokens"),
        ("disagreement", "tokens"),
    }
    (unnoticed,) = of(report, "disagreement")
    (_, first), (_, last) = unnoticed.example.messages
    assert unnoticed.example.ends == {"everything.pages.tokens": last["tokens"]}
    assert unnoticed.example.otherwise == {"everything.pages.tokens": first["tokens"]}


def test_a_sum_that_counts_an_engine_twice_is_a_finding_of_delivery_alone(hold):
    (again,) = hold("added again").findings
    assert (again.rule, again.field) == ("re-delivery", "count")
    assert again.example.messages == ((0, {"count": 1056}), (0, {"count": 1056}))
    assert again.example.ends == {"everything.pages.count": 2112}
    assert again.example.otherwise == {"everything.pages.count": 1056}


def test_a_field_of_a_newer_engine_that_is_taken_over_is_found(hold):
    (unknown,) = hold("takes anything").findings
    assert (unknown.rule, unknown.field) == ("unknown-field", None)
    assert list(unknown.example.ends) == [f"everything.pages.{name}" for name in unknown.example.messages[0][1]]


def test_a_value_that_the_wire_changes_is_found(hold):
    lost = of(hold(message=LENGTHENED), "round-trip")
    assert [finding.field for finding in lost] == ["longest"]


def test_what_is_accepted_stands_no_more_and_keeps_its_reason(hold):
    accept = [Accepted("re-delivery", "count", "nobody answers twice"), Accepted("re-delivery", "tokens", "or so")]
    report = hold("added again", accept=accept)
    assert report.standing == ()
    assert "accepted: nobody answers twice" in render(report)
    assert "--accept re-delivery:tokens accepts nothing" in report.notes[-1]
    assert as_json(report)["holds"]
    assert as_json(report)["findings"][0]["accepted"] == "nobody answers twice"


def test_accepting_a_field_that_is_none_is_refused(hold):
    with pytest.raises(InputError, match=r"Verdict has no such field. Did you mean 'count'\?"):
        hold(accept=[Accepted("re-delivery", "coun", "x")])


def test_a_process_that_dies_is_started_again_and_what_killed_it_is_shown(hold):
    report = hold("dies", examples=30)
    died = [finding for finding in report.findings if finding.example.error is not None]
    assert died
    assert "status 7" in str(died[0].example.error)
    assert any(784 in values.values() for _, values in died[0].example.messages)
    assert of(report, "unknown-field") == [], "the others go on"
    assert any("died too often" in why for one in report.tried for why in one.untried.values())


def test_a_process_that_hangs_is_given_up(hold):
    report = hold("hangs", examples=5, seconds=60)
    assert any("no answer within 2 s" in str(finding.example.error) for finding in report.findings)


def test_out_of_time_it_says_what_was_not_tried(hold):
    report = hold(seconds=0.001)
    assert report.findings == ()
    assert any("out of time" in why for one in report.tried for why in one.untried.values())
    assert render(report).splitlines()[-1].startswith("Holds as far as it was tried: ")


@pytest.mark.parametrize("fault", ["refuses", "needs what was never given"])
def test_a_front_end_that_cannot_be_driven_is_beyond_the_contract(hold, fault):
    with pytest.raises(InputError, match=r"vllm 9.9: Desk.take .* is beyond this contract") as caught:
        hold(fault)
    assert "\n" not in str(caught.value)


def test_an_engine_without_such_a_response_is_beyond_the_contract(tmp_path, monkeypatch):
    package = toy_contract.write(tmp_path)
    (package / "desk.py").unlink()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(InputError, match="beyond the contract: BeyondError: no method in its source decodes"):
        VllmSubject(sys.executable, QUICK)


def test_without_vllm_it_is_one_line(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(InputError, match="vLLM cannot be imported there: ModuleNotFoundError: No module named 'vllm'"):
        VllmSubject(sys.executable, QUICK)


@pytest.mark.parametrize(("python", "message"), [("/no/such/python", "cannot be started"), ("/bin/false", "ended")])
def test_an_interpreter_that_is_none_is_one_line(python, message):
    with pytest.raises(InputError, match=message) as caught:
        VllmSubject(python, QUICK)
    assert "\n" not in str(caught.value)
