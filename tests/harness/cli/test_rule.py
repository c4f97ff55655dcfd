"""`staticfire rule CODE` and `staticfire rules`."""

import json

import pytest

from staticfire.engine.config.rules.registry import CATALOGUE
from staticfire.harness.cli import main


@pytest.mark.parametrize("code", [rule.code for rule in CATALOGUE])
def test_every_rule_has_a_page(capsys, code):
    assert main(["rule", code]) == 0
    out = capsys.readouterr().out
    for part in (code, "Why:", "Fix:", "Example:"):
        assert part in out


def test_a_page_shows_its_example_resolved(capsys):
    assert main(["rule", "sf101"]) == 0
    by_code = capsys.readouterr().out
    assert main(["rule", "align-without-chunked-prefill"]) == 0
    assert capsys.readouterr().out == by_code
    assert "Example: --no-enable-chunked-prefill" in by_code
    assert "repaired by: drop --no-enable-chunked-prefill" in by_code


@pytest.mark.parametrize(
    ("code", "hint"), [("SF01", "Did you mean 'SF"), ("align-without-chunked", "Did you mean 'align-")]
)
def test_an_unknown_rule_names_the_nearest(capsys, code, hint):
    assert main(["rule", code]) == 2
    assert hint in capsys.readouterr().err


def test_all_rules_are_listed(capsys):
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [[rule.code, rule.name] for rule in CATALOGUE]
    assert main(["rules", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in rows] == [rule.code for rule in CATALOGUE]
    assert {row["kind"] for row in rows} == {"refuse", "rewrite"}
