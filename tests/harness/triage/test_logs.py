"""Failures out of logs: those of a real run of pytest, those of an engine that died, those of machines."""

import subprocess
import sys

from staticfire.harness.triage import logs

FOUNDING = "Chunked prefill is required for mamba cache mode 'align'."
SUITE = f"""
import pytest

def engine(model):
    assert model != "hybrid", "{FOUNDING}"

@pytest.mark.parametrize("model", ["hybrid", "dense"])
def test_start(model):
    engine(model)

class TestMore:
    def test_inside(self):
        try:
            engine("hybrid")
        except AssertionError as error:
            raise RuntimeError("Engine core initialization failed. See root cause above.") from error

def test_numbers():
    assert 1 + 1 == 3

@pytest.fixture
def broken():
    raise OSError("No space left on device")

def test_with_fixture(broken):
    pass
"""

ENGINE = f"""
2026-11-30T10:00:00.123Z collecting
(EngineCore_DP0 pid=12) ERROR 11-30 10:00:01 [core.py:700] EngineCore failed to start.
(EngineCore_DP0 pid=12) ERROR 11-30 10:00:01 [core.py:700] Traceback (most recent call last):
(EngineCore_DP0 pid=12) ERROR 11-30 10:00:01 [core.py:700] AssertionError: {FOUNDING}
\x1b[31mRuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}\x1b[0m
"""


def run(tmp_path, *options):
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:buildkite-test-collector", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_each_failed_test_of_a_real_log_is_found_once_with_what_it_raised(tmp_path):
    found = {failure.id: failure.message for failure in logs.read(run(tmp_path), "a.log")}
    assert set(found) == {
        "test_suite.py::test_start[hybrid]",
        "test_suite.py::TestMore::test_inside",
        "test_suite.py::test_numbers",
        "test_suite.py::test_with_fixture",
    }
    assert FOUNDING in found["test_suite.py::test_start[hybrid]"]
    assert "assert (1 + 1) == 3" in found["test_suite.py::test_numbers"]
    assert "No space left on device" in found["test_suite.py::test_with_fixture"]


def test_a_narrow_terminal_cuts_the_summary_and_the_traceback_says_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("CI", raising=False)
    found = {failure.id: failure.message for failure in logs.read(run(tmp_path), "a.log")}
    assert FOUNDING in found["test_suite.py::test_start[hybrid]"]


def test_an_engine_that_died_is_explained_by_what_it_logged():
    test = "FAILED tests/test_a.py::test_it - RuntimeError: Engine core initialization failed. See root cause above."
    (found,) = logs.read(ENGINE + test, "a.log")
    assert found.id == "tests/test_a.py::test_it"
    assert FOUNDING in found.message


def test_without_tests_what_the_engine_raised_is_the_failure():
    (found,) = logs.read(ENGINE, "server.log")
    assert (found.id, found.line) == ("server.log:5", 5)
    assert FOUNDING in found.message


def test_a_collection_error_is_a_failure(tmp_path):
    (tmp_path / "test_bad.py").write_text("import missing_module\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:buildkite-test-collector"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (found,) = logs.read(done.stdout, "a.log")
    assert found.id == "test_bad.py"
    assert "No module named 'missing_module'" in found.message


def test_signs_of_a_machine_are_found_once_and_not_beside_tests_that_print_them():
    lost = "fatal: unable to access 'https://example.org/': Could not resolve host: example.org\n"
    assert [failure.id for failure in logs.read(lost * 3, "a.log")] == ["a.log:1"]
    red = "FAILED tests/test_a.py::test_it - AssertionError: 1 != 2\n"
    assert [failure.id for failure in logs.read(lost + red, "a.log")] == ["tests/test_a.py::test_it"]
    assert len(logs.read(red + "agent lost\n", "a.log")) == 2


def test_what_a_test_asserts_of_such_words_is_no_sign():
    assert logs.read("AssertionError: expected 'No space left on device'\n", "a.log")[0].message.startswith("Assertion")
    assert len(logs.read("AssertionError: expected 'No space left on device'\n", "a.log")) == 1


def test_a_green_log_tells_of_nothing():
    assert logs.read("===== 3 passed in 1.0s =====\n", "a.log") == ()
    assert logs.read("", "a.log") == ()
