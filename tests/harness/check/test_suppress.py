"""Suppression comments: where they reach, what they must say, and that none lies around unused."""

import pytest

from fake_engine import FakeEngine, configuration, scan, site
from staticfire.harness.check import run, suppress

CALL = "def test_it():\n    vllm_runner(\n        'org/hybrid',\n        enable_chunked_prefill=False,\n    )\n"


def accepted(tmp_path, monkeypatch, source, *, line=2, end=5, config=None):
    """The report on a file whose one site spans the given lines."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_a.py").write_text(source)
    one = site(config or configuration(enable_chunked_prefill=False), path="test_a.py", line=line)
    where = type(one.where)("test_a.py", line, 5, end, 6)
    one = type(one)(where, one.form, one.function, one.configurations)
    return run.accept(run.check(scan(one), FakeEngine()), [tmp_path / "test_a.py"], None)


def at(line, comment):
    """The call with a comment behind one of its lines, or above it."""
    lines = CALL.splitlines()
    if line == 0:
        lines.insert(1, f"    {comment}")
    else:
        lines[line - 1] += f"  {comment}"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "name",
    ["SC101", "sc101", "refused", "chunked-prefill-is-required-for-mamba-cache-mode", "SC999, refused"],
)
@pytest.mark.parametrize("line", [2, 4, 5])
def test_a_comment_on_a_line_of_the_call_accepts_the_finding(tmp_path, monkeypatch, name, line):
    report = accepted(tmp_path, monkeypatch, at(line, f"# staticfire: allow {name} -- known, see 12"))
    assert report.findings == ()
    (one,) = report.silenced
    assert (one.how, one.reason) == ("comment", "known, see 12")


def test_a_comment_of_its_own_is_about_the_next_line_of_code(tmp_path, monkeypatch):
    report = accepted(tmp_path, monkeypatch, at(0, "# staticfire: allow SC101 -- why not"), line=3, end=6)
    assert report.findings == ()


def test_a_fingerprint_names_one_finding(tmp_path, monkeypatch):
    name = accepted(tmp_path, monkeypatch, CALL).findings[0].sites[0].fingerprint
    assert accepted(tmp_path, monkeypatch, at(2, f"# staticfire: allow {name} -- x")).findings == ()


@pytest.mark.parametrize("rest", ["allow SC101", "allow SC101 --", "allow", "deny SC101 -- x"])
def test_a_comment_without_a_reason_accepts_nothing_and_is_a_finding(tmp_path, monkeypatch, rest):
    report = accepted(tmp_path, monkeypatch, at(2, f"# staticfire: {rest}"))
    assert [one.kind for one in report.findings] == ["refused", "invalid-suppression"]


@pytest.mark.parametrize("comment", ["# staticfire: allow SC201 -- wrong code", "# staticfire: allow nothing -- typo"])
def test_a_comment_that_accepts_nothing_is_a_finding(tmp_path, monkeypatch, comment):
    report = accepted(tmp_path, monkeypatch, at(2, comment))
    kinds = {one.kind: one for one in report.findings}
    assert set(kinds) == {"refused", "unused-suppression"}
    assert str(kinds["unused-suppression"].sites[0]).startswith("test_a.py:2:")


def test_a_comment_at_a_site_that_was_not_judged_is_left_alone(tmp_path, monkeypatch):
    elsewhere = configuration("org/elsewhere")
    report = accepted(tmp_path, monkeypatch, at(2, "# staticfire: allow SC101 -- later"), config=elsewhere)
    assert report.findings == ()


def test_a_text_that_looks_like_a_comment_is_none(tmp_path, monkeypatch):
    source = CALL + 'TEXT = """\n# staticfire: allow SC101\n"""\n'
    assert [one.kind for one in accepted(tmp_path, monkeypatch, source).findings] == ["refused"]


def test_shell_and_broken_python_are_read_by_lines(tmp_path):
    (tmp_path / "a.sh").write_text("vllm serve x  # staticfire: allow SC101 -- y\n")
    (tmp_path / "b.py").write_text("def (:\n  x  # staticfire: allow SC101 -- y\n")
    for name, line in (("a.sh", 1), ("b.py", 2)):
        (comment,) = suppress.read(tmp_path / name, name)
        assert (comment.line, comment.names, comment.reason, comment.fault) == (line, ("SC101",), "y", "")
