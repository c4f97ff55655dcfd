"""The machine that mutates kernels: what its operators change, what it draws, and when it is content."""

import ast
import textwrap
from dataclasses import replace

import pytest
from mutation.report import Outcome, table, verdict
from mutation.runs import Fate, Suite
from mutation.sample import Mutant, callers, draw, every_mutant, mutants_of, reasons

TOY = textwrap.dedent(
    """
    @triton.jit
    def _helper(x, row, inside, x_row, x_column, WIDE: tl.constexpr):
        return tl.load(x + row * x_row + 2 * x_column, mask=inside, other=0).to(WIDE)


    @triton.jit
    def _toy(x, state, slots, out, x_row, x_column, rows, WIDE: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        slot = tl.load(slots + row).to(tl.int64)
        inside = (row < rows) & (slot >= 0)
        total = tl.zeros([4], dtype=WIDE)
        total += _helper(x, row, inside, x_row, x_column, WIDE)
        total += tl.load(state + slot, mask=inside, other=0)
        tl.store(out + row, tl.sum(total[:, None] * total[None, :], 1), mask=inside)


    def launch(x):
        _toy[(1,)](x)
    """
)


@pytest.fixture(scope="module")
def everything():
    return every_mutant()


@pytest.mark.parametrize(
    ("operator", "old", "new"),
    [
        ("offset off by one", "state + slot", "state + slot + 1"),
        ("mask dropped", "tl.load(state + slot, mask=inside, other=0)", "tl.load(state + slot)"),
        ("condition dropped", "(row < rows) & (slot >= 0)", "row < rows"),
        ("condition dropped", "(row < rows) & (slot >= 0)", "slot >= 0"),
        ("wrong stride", "x_row", "x_column"),
        ("wrong stride", "x_column", "x_row"),
        (
            "narrow accumulator",
            "total += tl.load(state + slot, mask=inside, other=0)",
            "total = (total + tl.load(state + slot, mask=inside, other=0)).to(tl.float16).to(WIDE)",
        ),
        (
            "narrow accumulator",
            "tl.sum(total[:, None] * total[None, :], 1)",
            "tl.sum((total[:, None] * total[None, :]).to(tl.float16), 1).to(WIDE)",
        ),
        ("index not looked up", "tl.load(slots + row).to(tl.int64)", "row.to(tl.int64)"),
        ("64 bits dropped", "tl.program_id(0).to(tl.int64)", "tl.program_id(0).to(tl.int32)"),
        ("wrong axis", "1", "0"),
        (
            "state dropped",
            "tl.load(state + slot, mask=inside, other=0)",
            "(tl.load(state + slot, mask=inside, other=0) * 0)",
        ),
        ("bound off by one", "row < rows", "row <= rows"),
        ("bound off by one", "slot >= 0", "slot > 0"),
    ],
)  # fmt: skip
def test_each_operator_changes_what_it_says(operator, old, new):
    found = {(mutant.edit.operator, mutant.old, mutant.edit.text) for mutant in mutants_of("toy", TOY)}
    assert (operator, old, new) in found


def test_a_mutant_differs_in_one_place_and_names_its_line():
    for mutant in mutants_of("toy", TOY):
        before, after = TOY.splitlines(), mutant.mutated.splitlines()
        assert [n for n, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b] == [mutant.line]
        assert f"-{before[mutant.line - 1]}" in mutant.difference
        assert f"+{after[mutant.line - 1]}" in mutant.difference


def test_a_helper_is_run_by_whoever_calls_it():
    assert callers(TOY) == {
        "_helper": {"_helper", "_toy", "launch"},
        "_toy": {"_toy", "launch"},
        "launch": {"launch"},
    }


def test_every_mutant_of_every_kernel_is_another_program(everything):
    for mutant in everything:
        assert ast.dump(ast.parse(mutant.mutated)) != ast.dump(ast.parse(mutant.source)), mutant.name


def test_the_sample_is_repeatable_large_enough_and_spread(everything, repo_root):
    sample = draw(everything, 96, 5)
    assert sample == draw(everything, 96, 5)
    assert sample != draw(everything, 96, 6)
    assert len(set(sample)) == 96
    assert {mutant.folder for mutant in sample} == {file.parent.name for file in repo_root.glob("kernels/*/triton.py")}
    kernels = {(mutant.folder, mutant.function) for mutant in everything}
    assert {(mutant.folder, mutant.function) for mutant in sample} == kernels
    assert {mutant.edit.operator for mutant in sample} == {mutant.edit.operator for mutant in everything}


def test_what_is_called_equivalent_exists_and_says_why(everything):
    assert all(len(reason) > 40 for reason in reasons(everything).values())


def test_a_stale_entry_is_refused(tmp_path):
    file = tmp_path / "equivalent.toml"
    file.write_text('[[mutant]]\nkernel = "toy._toy"\noperator = "wrong axis"\nold = "7"\nnew = "0"\nreason = "r"\n')
    with pytest.raises(SystemExit, match="no kernel has the mutant"):
        reasons(mutants_of("toy", TOY), file)
    file.write_text(file.read_text().replace("7", "1"))
    assert list(reasons(mutants_of("toy", TOY), file).values()) == ["r"]


def test_tests_are_those_that_launch_the_kernel_the_quickest_first():
    launches = {"a": frozenset({"o.k"}), "b": frozenset({"o.k", "o.l"}), "c": frozenset({"o.l"})}
    tests = Suite({"a": 2.0, "b": 1.0, "c": 0.5}, launches)
    assert tests.of(frozenset({"o.k"})) == ["b", "a"]
    assert tests.of(frozenset({"o.m"})) == []


def outcomes(killed, survived) -> list[Outcome]:
    mutants = mutants_of("toy", TOY)
    many = [replace(mutants[n % len(mutants)], folder=f"toy{n}") for n in range(killed + survived)]
    return [Outcome(m, Fate(n < killed, "AssertionError", "", 1.0)) for n, m in enumerate(many)]


@pytest.mark.parametrize(("killed", "survived", "code"), [(57, 3, 0), (56, 4, 1), (59, 0, 1), (60, 0, 0), (0, 0, 1)])
def test_95_percent_of_60_or_more_must_be_killed(capsys, killed, survived, code):
    assert verdict(outcomes(killed, survived), {}) == code
    said = capsys.readouterr().out
    assert said.count("survived: ") == survived
    assert said.count("+++ kernels/") == survived


def test_what_is_equivalent_is_shown_and_not_counted():
    mutant: Mutant = mutants_of("toy", TOY)[0]
    rows = table(outcomes(1, 1), {mutant: "because"}).splitlines()
    assert rows[-1] == "| **all** | 1 | 1 | 1 |"
    assert f"| `toy.{mutant.function}` | 0 | 0 | 1 |" in rows
