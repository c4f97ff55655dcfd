"""Cells of small matrices: complete, first-class when refused, and stable under reordering."""

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.errors import InputError
from staticfire.harness.matrix.compare import compare, every_combination
from staticfire.harness.matrix.verify import verify

from .toy import ToyProbe, every_row, toy

AXES: dict[str, list[Any]] = {
    "model": ["jamba-tiny", "llama-tiny"],
    "a": [1, 2, 3],
    "b": ["x", "y"],
    "c": ["unset", True, False],
}
RULES = {
    "R1": lambda c: c["a"] == 1 and c.get("c") is True,
    "R2": lambda c: c["model"] == "llama-tiny" and c["b"] == "y",
}
CONSTRAINTS = [
    ("a = 1, c = true", "R1"),
    ("model = 'llama-tiny', b = 'y'", "R2"),
]


def body(axes=AXES, constraints=CONSTRAINTS, extra=""):
    text = "[axes]\n" + "".join(f"{name} = {spell(values)}\n" for name, values in axes.items())
    for when, rule in constraints:
        text += f'[[constraint]]\nwhen = {{ {when} }}\nreason = "by {rule}"\nkind = "unsupported"\nrule = "{rule}"\n'
    return text + extra


def spell(values):
    return "[" + ", ".join(str(v).lower() if isinstance(v, bool) else repr(v) for v in values) + "]"


def test_valid_cells_cover_and_refused_cells_break_one_rule_each():
    matrix = toy(body(), **RULES)
    valid = [cell for cell in matrix.cells() if cell.verdict == "valid"]
    refused = [cell for cell in matrix.cells() if cell.verdict == "refused"]
    assert verify(matrix.document, [cell.axes for cell in valid]).complete
    assert {cell.rules for cell in refused} == {("R1",), ("R2",)}
    for cell in refused:
        config = {"model": cell.model, **cell.config}
        assert tuple(code for code, rule in RULES.items() if rule(config)) == cell.rules
        assert cell.reason == f"by {cell.rules[0]}"
    for rule in RULES:
        mine = [cell.axes for cell in refused if cell.rules == (rule,)]
        alone = [r for r in every_row(matrix.document) if [c for c, f in RULES.items() if f(typed(r))] == [rule]]
        for axis in AXES:
            assert {str(row[axis]) for row in mine} == {str(row[axis]) for row in alone}


def typed(row):
    return {name: value for name, value in row.items() if value != "unset"}


def test_unset_is_left_out_and_fixed_values_are_typed():
    matrix = toy(body(extra="[fixed]\nd = 5\n"), **RULES)
    for cell in matrix.cells():
        assert cell.config["d"] == 5
        assert ("c" in cell.config) == (cell.axes["c"] != "unset")
        assert "model" not in cell.config


@given(st.integers(0, 2**32))
def test_reordering_the_file_changes_no_cell(seed):
    rng = random.Random(seed)
    names = list(AXES)
    rng.shuffle(names)
    axes: dict[str, list[object]] = {name: rng.sample(AXES[name], len(AXES[name])) for name in names}
    constraints = rng.sample(CONSTRAINTS, 2)
    one, other = toy(body(), **RULES), toy(body(axes, constraints), **RULES)
    assert {cell.id: (dict(cell.axes), cell.verdict, cell.rules) for cell in one.cells()} == {
        cell.id: (dict(cell.axes), cell.verdict, cell.rules) for cell in other.cells()
    }


def test_the_seed_of_the_cover_decides():
    ids = {tuple(c.id for c in toy(body(extra=f"[cover]\nseed = {seed}\n"), **RULES).cells()) for seed in range(8)}
    assert len(ids) > 1


def test_seed_rows_are_among_the_valid_cells():
    extra = "[[seed]]\na = 3\nb = 'y'\nc = false\nmodel = 'jamba-tiny'\n"
    assert toy(body(extra=extra), **RULES).cell("jamba-tiny-a-3-b-y-no-c").verdict == "valid"


def test_digest_follows_the_work():
    base = toy(body(), **RULES)
    assert re.fullmatch(r"[0-9a-f]{16}", base.digest)
    assert toy(body(), **RULES).digest == base.digest
    assert toy(body(extra="[fixed]\nd = 5\n"), **RULES).digest != base.digest
    assert toy(body({**AXES, "a": [1, 2, 4]}), **RULES).digest != base.digest


class TestSelect:
    def test_by_axis_and_value(self):
        matrix = toy(body(), **RULES)
        chosen = matrix.select([("a", "2"), ("c", "true")])
        assert chosen
        assert {(cell.axes["a"], cell.axes["c"]) for cell in chosen} == {(2, True)}
        assert len(matrix.select([("a", "2"), ("a", "3")])) > len(matrix.select([("a", "2")]))

    def test_unknown_axis_value_and_cell_give_the_nearest(self):
        matrix = toy(body(), **RULES)
        with pytest.raises(InputError, match=r"no axis named 'modl'\. Did you mean 'model'\?"):
            matrix.select([("modl", "x")])
        with pytest.raises(InputError, match=r"'tru' is no value of axis 'c'\. Did you mean 'true'\?"):
            matrix.select([("c", "tru")])
        with pytest.raises(InputError, match=r"no cell 'jamba-tiny-a-9'\. Did you mean 'jamba-tiny-a-"):
            matrix.cell("jamba-tiny-a-9")

    def test_every_wrong_selection_is_told_at_once(self):
        with pytest.raises(InputError) as told:
            toy(body(), **RULES).select([("modl", "x"), ("c", "tru"), ("a", "2")])
        assert "no axis named 'modl'" in str(told.value)
        assert "'tru' is no value of axis 'c'" in str(told.value)

    def test_an_excluded_combination_is_explained(self):
        extra = '[[constraint]]\nwhen = { a = 2, b = "y" }\nreason = "two has no why"\nkind = "impossible"\n'
        with pytest.raises(InputError, match=r"no cell with a=2, b=y: two has no why \(impossible, line \d+\)"):
            toy(body(extra=extra), **RULES).select([("a", "2"), ("b", "y")])

    def test_a_combination_that_was_not_chosen_is_explained(self):
        matrix = toy(body(), **RULES)
        present = {cell.id for cell in matrix.cells()}
        row = next(
            row
            for row in every_row(matrix.document)
            if not any(rule(typed(row)) for rule in RULES.values())
            and not any(dict(cell.axes) == row for cell in matrix.cells())
        )
        assert present
        with pytest.raises(InputError, match=r"the choice of cells holds no such combination; a \[\[seed\]\]"):
            matrix.select([(name, str(value).lower()) for name, value in row.items()])


class TestCompare:
    def test_agreement(self):
        matrix = toy(body(), **RULES)
        assert compare(matrix.cells(), ToyProbe(**RULES)) == ()
        assert compare(every_combination(matrix.document), ToyProbe(**RULES)) == ()

    def test_declared_valid_but_refused(self):
        matrix = toy(body(), **RULES)
        stricter = {**RULES, "R3": lambda c: c["a"] == 2}
        findings = compare(matrix.cells(), ToyProbe(**stricter))
        assert findings
        assert {finding.axes["a"] for finding in findings} == {2}
        assert ("valid", "refused by R3") in {(f.declared, f.answered) for f in findings}
        assert ("refused by R2", "refused by R2, R3") in {(f.declared, f.answered) for f in findings}

    def test_declared_refused_but_accepted(self):
        laxer = {"R1": RULES["R1"], "R2": lambda c: False}
        findings = compare(toy(body(), **RULES).cells(), ToyProbe(**laxer))
        assert {(f.declared, f.answered) for f in findings} == {("refused by R2", "valid")}

    def test_refused_by_another_rule(self):
        swapped = {"R1": RULES["R2"], "R2": RULES["R1"]}
        findings = compare(toy(body(), **RULES).cells(), ToyProbe(**swapped))
        assert {(f.declared, f.answered) for f in findings} == {
            ("refused by R1", "refused by R2"),
            ("refused by R2", "refused by R1"),
        }

    def test_no_answer(self):
        from staticfire.harness.probe.base import Crashed

        class Dead(ToyProbe):
            def ask(self, model, config):
                return Crashed("it died")

        findings = compare(toy(body(), **RULES).cells()[:1], Dead())
        assert findings[0].answered == "no answer"
        assert "it died" in findings[0].message

    def test_every_combination_asks_about_rows_that_break_several_rules_but_not_about_impossible_ones(self):
        extra = '[[constraint]]\nwhen = { a = 2, b = "y" }\nreason = "no"\nkind = "impossible"\n'
        cells = list(every_combination(toy(body(extra=extra), **RULES).document))
        assert len(cells) == 36 - 6
        both = [cell for cell in cells if cell.rules == ("R1", "R2")]
        assert [cell.id for cell in both] == ["llama-tiny-a-1-b-y-c"]
        assert both[0].reason == "by R1; by R2"
