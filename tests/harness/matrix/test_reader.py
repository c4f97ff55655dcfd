"""Faults in matrix files: all at once, each with line, key and nearest name."""

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.matrix.workload import Workload

from .toy import HEAD, ToyProbe, toy

AXES = '[axes]\nmodel = ["jamba-tiny", "llama-tiny"]\na = [1, 2]\nb = ["x", "y", "z"]\n'
RULE = '[[constraint]]\nwhen = { a = 1 }\nreason = "r"\nkind = "unsupported"\nrule = "R1"\n'


def faults(body, **rules):
    with pytest.raises(InputError) as caught:
        toy(body, **rules)
    return str(caught.value).split("\n")


def test_a_sound_matrix_has_no_fault():
    toy(AXES + RULE)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("", "toy.toml:1: axes: a matrix needs [axes] with at least the axis 'model'"),
        ("[axes]\na = [1]", "toy.toml:6: axes: a matrix needs [axes] with at least the axis 'model'"),
        (
            '[axes]\nmodel = "jamba-tiny"',
            "toy.toml:7: axes.model: must be a list of at least one value, got 'jamba-tiny'",
        ),
        ("[axes]\nmodel = []", "toy.toml:7: axes.model: must be a list of at least one value, got []"),
        ('[axes]\nmodel = ["jamba-tin"]', "axes.model: no model named 'jamba-tin'. Did you mean 'jamba-tiny'?"),
        (AXES + "zz = [1]", "toy.toml:10: axes.zz: 'zz' is no keyword"),
        (AXES + 'c = ["bad"]', "toy.toml:10: axes.c: c='bad' is bad"),
        (AXES + "c = [[1]]", "axes.c: a value must be a string, number or boolean, got [1]"),
        (AXES + "c = [1, 1]", "axes.c: the value 1 is there twice"),
        (AXES + 'c = [1, "1"]', "axes.c: '1' and 1 of axis 'c' are both 'c-1' in cell ids"),
        (AXES + "[fixed]\na = 1", "toy.toml:11: fixed.a: is an axis as well"),
        (AXES + "[fixed]\nmodel = 'x'", "fixed.model: is an axis as well"),
        (AXES + "[fixed]\nc = 'bad'", "fixed.c: c='bad' is bad"),
        (AXES + "[constrant]", "toy.toml:10: constrant: unknown key. Did you mean 'constraint'?"),
        (AXES + "[constraint]\nx = 1", "constraint: must be written as [[constraint]]"),
        (AXES + "[cover]\nstrenght = 2", "toy.toml:11: cover.strenght: unknown key. Did you mean 'strength'?"),
        (AXES + "[workload]\nprompts = 'few'", "toy.toml:11: workload.prompts: must be one of all, around-a-block"),
        (AXES + "[workload]\nmax_tokens = 0", "workload.max_tokens: must be a whole number from 1 to 1024, got 0"),
        (AXES + "[workload]\nrelations = 'all'", "workload.relations: must be a list of relations, got 'all'"),
        (
            AXES + "[workload]\nrelations = ['prefix-hits']",
            "workload.relations: no relation 'prefix-hits'. Did you mean 'prefix-hit'?",
        ),
        (AXES + "[cover]\nstrength = 0", "cover.strength: must be a whole number from 1 to 6, got 0"),
        (AXES + "[cover]\nseed = true", "cover.seed: must be a whole number from 0 to"),
        (
            AXES + "[[submodel]]\naxes = ['a', 'bb']\nstrength = 2",
            "submodel[1].axes: no axis named 'bb'. Did you mean 'b'?",
        ),
        (AXES + "[[submodel]]\naxes = ['a']\nstrength = 2", "submodel[1].axes: must list two different axes or more"),
        (
            AXES + "[[submodel]]\naxes = ['a', 'b']",
            "submodel[1].strength: must be a whole number from 2 to 2, got None",
        ),
        (
            AXES + RULE.replace("a = 1", "aa = 1"),
            "toy.toml:11: constraint[1].when.aa: no axis named 'aa'. Did you mean 'a'?",
        ),
        (AXES + RULE.replace("a = 1", "b = 'w'"), "constraint[1].when.b: 'w' is no value of the axis."),
        (AXES + RULE.replace("a = 1", "a = true"), "constraint[1].when.a: True is no value of the axis."),
        (AXES + RULE.replace("a = 1", "a = [1, 2]"), "constraint[1].when.a: names every value of the axis"),
        (AXES + RULE.replace("a = 1", "a = { nto = 1 }"), "constraint[1].when.a.nto: unknown key. Did you mean 'not'?"),
        (
            AXES + RULE.replace("{ a = 1 }", "{}"),
            "constraint[1].when: must be a table of axes and their values, got {}",
        ),
        (AXES + RULE.replace('"r"', '" "'), "constraint[1].reason: must be a non-empty string, got ' '"),
        (
            AXES + RULE.replace("unsupported", "unsuported"),
            "constraint[1].kind: must be one of impossible, unsupported, broken",
        ),
        (AXES + RULE.replace('rule = "R1"', ""), "constraint[1]: an unsupported combination needs the rule"),
        (AXES + RULE.replace("R1", "R3"), "constraint[1].rule: the engine has no rule 'R3' that refuses."),
        (
            AXES + RULE.replace("unsupported", "impossible"),
            "constraint[1].rule: an impossible combination is never asked",
        ),
        (
            AXES + RULE.replace("unsupported", "broken"),
            "constraint[1]: a broken combination, and only such a one, needs an issue",
        ),
        (AXES + RULE + 'issue = "#1"', "constraint[1]: a broken combination, and only such a one, needs an issue"),
        (AXES + RULE + "why = 1", "constraint[1].why: unknown key."),
        (AXES + "[cover.rest]\na = 3", "cover.rest.a: 3 is no value of the axis. Values: 1, 2."),
        (AXES + "[cover.rest]\nq = 3", "cover.rest.q: no axis named 'q'."),
        (AXES + "[cover]\nrest = 3", "cover.rest: must be a table of axes and their values, got 3"),
        (AXES + "[[seed]]\na = 3", "toy.toml:11: seed[1].a: 3 is no value of the axis. Values: 1, 2."),
        (AXES + "[[seed]]\nq = 3", "seed[1].q: no axis named 'q'."),
    ],
)
def test_each_fault_names_line_key_and_what_is_allowed(body, fault):
    assert any(fault in line for line in faults(body)), faults(body)


def test_all_faults_at_once_in_the_order_of_the_file():
    body = '[axes]\nmodel = ["jamba-tiny"]\na = ["bad"]\n[[seed]]\nx = 1\n[[constraint]]\nkind = "no"\n'
    found = faults(body)
    numbers = [int(line.split(":")[1]) for line in found]
    assert numbers == sorted(numbers)
    assert len(found) >= 5


def test_matrix_table():
    from staticfire.harness.matrix.matrix import parse

    with pytest.raises(InputError) as caught:
        parse('[matrix]\nname = "My Matrix"\n' + AXES, "toy.toml", ToyProbe())
    assert "toy.toml:2: matrix.name: must be lower-case letters" in str(caught.value)
    assert "toy.toml:1: matrix.description: must be a non-empty string, got None" in str(caught.value)


def test_broken_toml_names_the_line():
    from staticfire.harness.matrix.matrix import parse

    with pytest.raises(InputError, match=r"toy\.toml: not TOML: .*line 2"):
        parse("[matrix]\nname = \n", "toy.toml", ToyProbe())
    assert HEAD


@pytest.mark.parametrize(
    ("text", "message"),
    [("a = " + "[" * 5000, "nested too deeply"), ("a = " + "9" * 5000, "not a number that can be read")],
    ids=["deep", "long"],
)
def test_what_no_parser_takes_is_refused(text, message):
    from staticfire.harness.matrix.matrix import parse

    with pytest.raises(InputError, match=rf"toy\.toml: {message}"):
        parse(text, "toy.toml", ToyProbe())


class TestSoundness:
    def test_no_valid_row(self):
        body = AXES + RULE + RULE.replace("a = 1", "a = 2")
        assert faults(body) == ["toy.toml:10: constraint: the constraints together leave no valid row"]

    def test_a_constraint_that_another_one_swallows(self):
        body = AXES + RULE + RULE.replace("a = 1", "a = 1, b = 'x'").replace("R1", "R2")
        why = "matches nothing that the other constraints leave; its rule cannot be broken alone"
        assert faults(body) == [f"toy.toml:15: constraint[2]: {why}"]

    def test_a_constraint_swallowed_by_several(self):
        others = "".join(RULE.replace("a = 1", f"b = '{b}'").replace("R1", "R2") for b in "xy")
        body = AXES + others + RULE.replace("a = 1", "a = 1, b = ['x', 'y']")
        assert len(faults(body)) == 1
        assert "constraint[3]" in faults(body)[0]

    def test_a_seed_that_a_constraint_excludes(self):
        assert faults(AXES + RULE + "[[seed]]\na = 1\n") == [
            "toy.toml:15: seed[1]: the constraints exclude this row: r"
        ]

    def test_a_seed_that_only_several_constraints_exclude(self):
        body = AXES + "c = [1, 2]\n"
        body += RULE.replace("a = 1", "a = 1, b = ['x', 'y']") + RULE.replace("a = 1", "c = 1, b = 'z'").replace(
            "R1", "R2"
        )
        assert "the constraints exclude this row together" in faults(body + "[[seed]]\na = 1\nc = 1\n")[0]

    def test_a_value_that_no_cell_can_have(self):
        body = AXES + RULE.replace("unsupported", "impossible").replace('rule = "R1"', "")
        assert faults(body) == ["toy.toml:8: axes.a: no cell, valid or refused, can have the value 1"]

    def test_a_value_for_refused_cells_alone_is_fine(self):
        matrix = toy(AXES + RULE)
        assert {cell.verdict for cell in matrix.cells() if cell.axes["a"] == 1} == {"refused"}


def test_a_workload_goes_into_every_cell_and_into_the_digest():
    small = toy(AXES + "[workload]\nprompts = 'around-a-block'\nmax_tokens = 8\nrelations = []\n")
    assert {cell.workload for cell in small.cells()} == {Workload("around-a-block", 8, ())}
    whole = toy(AXES)
    assert {cell.workload for cell in whole.cells()} == {Workload()}
    assert small.digest != whole.digest
