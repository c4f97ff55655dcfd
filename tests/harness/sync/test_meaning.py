"""A field merged by another rule than its merged value means is a finding in both modes, and never a crash."""

import subprocess
import sys
from dataclasses import replace

import pytest

from staticfire.engine.ready.response import TABLE, Merge
from staticfire.harness.cli import main
from staticfire.harness.sync.contract.audit import audit
from staticfire.harness.sync.contract.reference import ReferenceSubject
from staticfire.harness.sync.contract.text import render
from staticfire.harness.sync.meaning import MEANING, NAMES, misdeclared

WRONG = [(name, merge) for name, travels in TABLE.items() for merge in Merge if merge is not travels.merge]


def test_every_field_has_a_meaning_and_is_declared_so():
    assert MEANING.keys() == TABLE.keys()
    assert misdeclared() == {}


@pytest.mark.parametrize(("name", "merge"), WRONG, ids=lambda value: getattr(value, "name", value))
def test_each_wrong_merge_of_each_field_is_a_finding_in_both_modes(monkeypatch, capsys, name, merge):
    monkeypatch.setitem(TABLE, name, replace(TABLE[name], merge=merge))
    (finding,) = audit(ReferenceSubject(), examples=1).findings
    assert (finding.rule, finding.field) == ("merge", name)
    assert finding.example.ends == {name: NAMES[merge]}
    assert main(["sync", "--engine", "reference", "--contract"]) == 1
    assert "merge: " + name in capsys.readouterr().out
    assert main(["sync", "--engine", "reference", "jamba-tiny-grow"]) == 1
    assert f"{name}: the front end merges by {NAMES[merge]!r}" in capsys.readouterr().out
    assert render(audit(ReferenceSubject(), examples=1))


@pytest.mark.parametrize("merge", Merge, ids=lambda merge: merge.name)
def test_a_wrong_declaration_in_the_source_is_no_crash(merge):
    """As an edit of the declaration: everything that is derived from it at import is derived anew."""
    script = (
        "import sys; from dataclasses import replace\n"
        "from staticfire.engine.ready import response as r\n"
        f"r.TABLE['num_gpu_blocks'] = replace(r.TABLE['num_gpu_blocks'], merge=r.Merge.{merge.name})\n"
        "from staticfire.harness.cli import main\n"
        "sys.exit(main(['sync', '--engine', 'reference', '--contract', '--examples', '1']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if merge is Merge.SUM_OVER_ENGINES else 1), done.stderr
    assert "Traceback" not in done.stderr
