"""The table of planted faults fits the sources, and the machine that replays it sees what it should, no more."""

import json
from pathlib import Path

import pytest
from planted import __main__ as command
from planted.replay import Fate, ReplayError, cells, copy_of_the_package, judge, relation_of, try_fault
from planted.table import COLD, ROOT, Edit, Fault, TableError, read

from staticfire.harness.matrix import load
from staticfire.harness.matrix.workload import RELATION_NAMES

FAULT = Fault("a name", "what is met", "stops", "went on", "a-cell", ())


@pytest.fixture(scope="module")
def table():
    return read(relations=RELATION_NAMES)


def test_every_fault_names_texts_that_stand_in_the_sources_once_and_relations_that_exist(table):
    assert len(table) >= 24
    assert all(fault.edits and fault.says and len(fault.meets) > 20 for fault in table)


def test_every_relation_that_can_be_broken_has_a_fault(table):
    assert {fault.seen_by for fault in table} == {COLD, *RELATION_NAMES} - {"block-boundaries"}


def test_every_cell_is_one_of_the_hybrid_matrix_that_the_engine_runs(table):
    valid = {cell.id for cell in load("hybrid").cells() if cell.verdict == "valid"}
    assert {fault.cell for fault in table} <= valid


ENTRY = """
[[fault]]
name = "n"
meets = "m"
seen_by = "cold"
says = "off by"
cell = "c"

[[fault.edit]]
file = "engine/request.py"
old = "class Request:"
new = "class Other:"
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('old = "class Request:"', 'old = "no such text"', "stands there 0 times, not once: 'no such text'"),
        ('old = "class Request:"', 'old = "int"', "times, not once: 'int'"),
        ('new = "class Other:"', 'new = "class Request:"', "changes nothing"),
        ("engine/request.py", "engine/requests.py", "no such file"),
        ("engine/request.py", "harness/oracle/laws.py", "never in what judges them"),
        ('seen_by = "cold"', 'seen_by = "colder"', "seen_by='colder': no such relation; known: cold, block-boundaries"),
        ('says = "off by"\n', "", "n: no says"),
        ('says = "off by"', 'says = "off by"\nsaid = "x"', "n: unknown key said"),
        ('new = "class Other:"', "", "an edit has the keys ['file', 'old']"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path, old, new, said):
    path = tmp_path / "faults.toml"
    path.write_text(ENTRY, encoding="utf-8")
    assert len(read(path, relations=RELATION_NAMES)) == 1
    path.write_text(ENTRY.replace(old, new), encoding="utf-8")
    with pytest.raises(TableError) as caught:
        read(path, relations=RELATION_NAMES)
    assert said in str(caught.value)


def test_two_faults_of_one_name_are_refused(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text(ENTRY * 2, encoding="utf-8")
    with pytest.raises(TableError, match="n: two entries have this name"):
        read(path)


def test_a_copy_is_changed_and_the_checkout_is_not():
    edit = Edit("engine/request.py", "class Request:", "class Other:")
    before = (ROOT / edit.file).read_bytes()
    with copy_of_the_package() as root:
        edit.apply(root)
        assert "class Other:" in (root / edit.file).read_text(encoding="utf-8")
        assert (root / "src" / "staticfire" / "engine" / "request.py").samefile(root / edit.file)
        with pytest.raises(TableError):
            edit.apply(root)
    assert not root.exists()
    assert (ROOT / edit.file).read_bytes() == before


def result(verdict="failed", *told, vacuous=None, **detail):
    failures = [{"run": run, "message": message} for run, message in told]
    return {"verdict": verdict, "detail": {"failures": failures, "vacuous": vacuous or {}, **detail}}


@pytest.mark.parametrize(
    ("seen", "given", "message"),
    [
        (True, result("failed", ("cold", "x"), ("stops", "it went on")), "stops: it went on"),
        (True, result("failed", ("stops, again", "it went on")), "stops, again: it went on"),
        (True, result("failed", vacuous={"stops": "nothing went on"}), "stops: nothing went on"),
        (False, result("failed", ("stops", "it ended")), "not with the words 'went on': stops: it ended"),
        (False, result("failed", ("cold", "it went on")), "stops says nothing, but cold does"),
        (False, result("passed"), "stops says nothing"),
        (False, {"verdict": "passed"}, "stops says nothing"),
        (False, result("error", error="KeyError: 3"), "KeyError: 3"),
        (False, result("passed", ("stops", "it went on")), "not with the words 'went on': stops: it went on"),
    ],
)
def test_a_fault_is_seen_by_its_relation_with_its_words_in_a_cell_that_fails(seen, given, message):
    assert judge(FAULT, given, 1.0) == Fate(seen, given["verdict"], message, 1.0)


def test_runs_of_one_relation_are_told_apart_after_a_comma():
    assert relation_of("sampling, in a batch") == relation_of("sampling") == "sampling"


@pytest.mark.parametrize(("seen", "code"), [([True, True], 0), ([True, False], 1), ([], 1)])
def test_one_fault_that_is_not_seen_fails_the_replay(capsys, seen, code):
    faults = [FAULT] * len(seen)
    assert command.report(faults, [Fate(one, "failed", "", 2.0) for one in seen]) == code
    said = capsys.readouterr().out
    assert said.count("NOT SEEN") == seen.count(False)
    assert f"{sum(seen)} of {len(seen)} planted faults" in said


def test_a_sound_engine_that_fails_proves_nothing(monkeypatch):
    monkeypatch.setattr(command, "cells", lambda root: frozenset({"a-cell"}))
    monkeypatch.setattr(command, "run", lambda root, wanted, jobs: {"a-cell": {"verdict": "failed"}})
    with pytest.raises(ReplayError, match=r"these do not pass: \{'a-cell'"):
        command.sound([FAULT], 1)
    monkeypatch.setattr(command, "cells", lambda root: frozenset({"another"}))
    with pytest.raises(ReplayError, match="the hybrid matrix has no cell a-cell"):
        command.sound([FAULT], 1)


def test_a_table_that_does_not_fit_ends_the_command_with_2(monkeypatch, capsys):
    def refused(**_):
        raise TableError("faults.toml: no")

    monkeypatch.setattr(command, "read", refused)
    assert command.main(["--list"]) == 2
    assert "faults.toml: no" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.slow
def test_a_planted_fault_turns_the_matrix_red_and_the_sound_engine_does_not(table, cache_dir):
    fault = next(fault for fault in table if fault.name == "stop tokens are ignored")
    command.sound([fault], 1)
    fate = try_fault(fault, Path(cache_dir))
    assert fate.seen, json.dumps(fate.__dict__)
    assert fate.message.startswith("stops: a stop token: the request ended by 'length' after 16 tokens")


def test_the_cells_of_a_copy_are_those_of_the_matrix():
    with copy_of_the_package() as root:
        assert cells(root) == {cell.id for cell in load("hybrid").cells()}
