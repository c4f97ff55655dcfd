"""Reports as a build leaves them: packed, cut short, binary, of many shards, by xdist, with what a test captured."""

import gzip
import re
import subprocess
import sys

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.triage import logs, reports
from staticfire.harness.triage.group import triage

FOUNDING = "AssertionError: Chunked prefill is required for mamba cache mode 'align'."
JUNIT = '<testsuites><testsuite><testcase name="test_a" classname="tests.test_x"><failure message="{}"/></testcase>'
END = "</testsuite></testsuites>"


def messages(seen):
    return [failure.message for one in seen for failure in one.failures]


@pytest.mark.parametrize(
    ("name", "text"), [("a.log.gz", FOUNDING), ("a.xml.gz", JUNIT.format(FOUNDING) + END), ("unnamed", FOUNDING)]
)
def test_what_is_packed_is_unpacked(tmp_path, name, text):
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    assert messages(reports.read([tmp_path / name])) == [FOUNDING]
    assert name == "unnamed" or messages(reports.read([tmp_path])) == [FOUNDING]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.log", bytes(range(256)) * 20, "binary"),
        ("a.json", b'{"a": 1}', "JSON"),
        ("a.log", gzip.compress(b"x" * 5000, mtime=0)[:30], "ended before"),
        ("a.xml", b"<html/>", "begins with <testsuites>"),
        ("a.xml", b"", "not XML"),
    ],
)
def test_what_is_no_report_is_refused_and_never_green(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{re.escape(str(tmp_path / name))}.*{said}"):
        reports.read([tmp_path / name])


def test_a_folder_without_a_report_is_an_error(tmp_path):
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(InputError, match="no report in this folder"):
        reports.read([tmp_path])


@pytest.mark.parametrize("xml", [JUNIT.format(FOUNDING)[:40], "", "<html/>"])
def test_one_report_that_was_cut_short_fails_itself_and_hides_no_other(tmp_path, xml):
    for number, text in enumerate([xml, JUNIT.format(FOUNDING) + END], 1):
        (tmp_path / "hybrid" / str(number)).mkdir(parents=True)
        (tmp_path / "hybrid" / str(number) / "junit.xml").write_text(text)
    for seen in (reports.read([tmp_path]), reports.read_junit([tmp_path / "hybrid"], tmp_path)):
        cut, whole = messages(seen)
        assert cut.startswith("The report cannot be read: ")
        assert whole == FOUNDING
        assert len(triage(seen, lambda _: None).groups) == 2


def test_a_log_may_begin_like_a_tag(tmp_path):
    (tmp_path / "a.log").write_text("<<<< begin\nValueError: boom\n")
    assert messages(reports.read([tmp_path / "a.log"])) == ["ValueError: boom"]


def test_what_is_no_utf_8_is_read_as_far_as_it_is(tmp_path):
    (tmp_path / "a.log").write_bytes(b"caf\xe9\n\rprogress 99%\rValueError: b\xe9\n")
    assert messages(reports.read([tmp_path / "a.log"])) == ["ValueError: b\ufffd"]


def test_a_log_is_read_in_pieces_and_no_further_than_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "MAX_LINE", 64)
    monkeypatch.setattr(reports, "MAX_LOG", 400)
    (tmp_path / "a.log").write_text("x" * 300 + "\nValueError: boom\n")
    assert messages(reports.read([tmp_path / "a.log"])) == ["ValueError: boom"]
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"x" * 10_000))
    with pytest.raises(InputError, match="larger than 400 bytes"):
        reports.read([tmp_path / "a.log.gz"])


SUITE = f"""
import pytest

def test_wrapped():
    print("(EngineCore_DP0 pid=1) ERROR 11-30 10:00:01 [core.py:7] {FOUNDING}")
    raise RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {{}}")

def test_other():
    print("(EngineCore_DP0 pid=2) ERROR 11-30 10:00:01 [core.py:7] ValueError: another cause")
    raise RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {{}}")

def test_lines():
    raise ValueError("Configuration refused: 1 fault\\n  SF201 budget: max_num_batched_tokens=1 is below")

def test_bare():
    exec("assert total % 2 == 0", {{"total": 3}})

def test_green():
    pass
"""


@pytest.mark.parametrize("options", [(), ("-n", "2"), ("--tb=short", "-o", "junit_logging=all")], ids=" ".join)
def test_each_test_has_the_cause_that_it_printed_itself_in_log_and_report(tmp_path, options):
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:buildkite-test-collector"]
    command += ["--junitxml=a.xml", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    told = {failure.id.split("::")[1]: failure.message for failure in logs.read(done.stdout, "a.log")}
    assert FOUNDING in told["test_wrapped"]
    assert told["test_other"] == "ValueError: another cause"
    assert "SF201 budget" in told["test_lines"]
    (tmp_path / "a.log").write_text(done.stdout)
    found = triage(reports.read([tmp_path / "a.xml", tmp_path / "a.log"]), lambda _: None)
    assert found.failures == 4
    assert "Engine core" not in "".join(group.title for group in found.groups)
    (seen,) = reports.read([tmp_path / "a.xml"])
    shown = {failure.id.split("::")[1]: failure.message for failure in seen.failures}
    assert set(shown) == set(told) == {"test_wrapped", "test_other", "test_lines", "test_bare"}
    kept = "junit_logging" in " ".join(options)
    assert (FOUNDING if kept else "Engine core initialization failed") in shown["test_wrapped"]
    assert "SF201 budget" in shown["test_lines"]


RETRIED = """
import pytest

@pytest.fixture
def broken():
    yield
    raise KeyError("of the fixture")

def test_both(broken):
    assert 0, "of the test"

def test_bad():
    raise ValueError("x")
"""


def test_a_test_that_was_tried_again_counts_once_and_a_fixture_is_told_from_its_test(tmp_path):
    (tmp_path / "test_suite.py").write_text(RETRIED)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:buildkite-test-collector"]
    command += ["--junitxml=a.xml", "--reruns=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    (seen,) = reports.read([tmp_path / "a.xml"])
    assert seen.cases == 2
    assert sorted(failure.message for failure in seen.failures) == [
        "AssertionError: of the test\nassert 0",
        "KeyError: 'of the fixture'",
        "ValueError: x",
    ]
