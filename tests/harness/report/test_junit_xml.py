from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.report import junit_xml
from staticfire.harness.run.identity import Identity
from staticfire.harness.run.record import RunRecord
from staticfire.harness.run.result import CellResult


def parse(record):
    return ET.fromstring(junit_xml.render(record))


def case(root, name):
    return next(element for element in root.iter("testcase") if element.get("name") == name)


def test_counts_add_up(record):
    root = parse(record)
    suite = root.find("testsuite")
    for element in (root, suite):
        assert {key: element.get(key) for key in ("tests", "failures", "errors", "skipped", "time")} == {
            "tests": "6",
            "failures": "3",
            "errors": "1",
            "skipped": "0",
            "time": "3.000",
        }
    assert len(suite.findall("testcase")) == 6
    assert len(list(root.iter("failure"))) == 3
    assert len(list(root.iter("error"))) == 1


def test_refused_as_expected_is_a_pass_with_its_rule(record):
    found = case(parse(record), "jamba-off")
    assert [child.tag for child in found] == ["properties"]
    assert {p.get("name"): p.get("value") for p in found.iter("property")} == {
        "verdict": "refused as expected",
        "rule": "SF101",
    }


def test_a_failure_reads_well(record):
    fault = case(parse(record), "jamba-32").find("failure")
    assert fault.get("type") == "failed"
    assert fault.get("message") == (
        "failed: wrong against transformers: run cold, prompt 3, position 17: logprobs are off by 0.31"
    )
    assert "rerun: staticfire run matrices/hybrid.toml --cell jamba-32\n" in fault.text
    assert "expected token 12 ' the', observed 99 ' a'" in fault.text


@pytest.mark.parametrize("verdict", ["refused unexpectedly", "accepted unexpectedly"])
def test_a_wrong_refusal_or_acceptance_is_a_failure(make_record, make_result, verdict):
    assert case(parse(make_record([make_result("a", verdict)])), "a").find("failure").get("type") == verdict


def test_an_error_is_an_error(record):
    assert "killed by SIGKILL" in case(parse(record), "llama-16").find("error").get("message")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_gives_a_document_that_parses(name, text):
    identity = Identity(matrix=text, digest="d", job="j:j", content="c", versions={})
    detail = {"error": text, "output": text, text: text}
    results = [CellResult(id=name, axes={"model": text}, verdict="error", seconds=0.0, rule=text, detail=detail)]
    record = RunRecord(
        file=text, identity=identity, started="x", seconds=0, selected=1, axes=["model"], results=results
    )
    root = parse(record)
    allowed = {character for character in name if character in "\t\n\r" or character >= " "} - {"\ufffe", "\uffff"}
    shown = case_name(root)
    assert set(shown) <= allowed
    assert [c for c in name if c in allowed] == list(shown)


def case_name(root):
    return next(root.iter("testcase")).get("name")


def test_terminal_escapes_and_control_characters_are_stripped(make_record, make_result):
    found = make_result("a\x1b[31m", "failed", detail={"message": "\x00bell\x07 \ufffe<&>\"'\n"})
    raw = junit_xml.render(make_record([found]))
    assert not any(byte in raw for byte in (b"\x1b", b"\x00", b"\x07"))
    assert case_name(ET.fromstring(raw)) == "a[31m"
