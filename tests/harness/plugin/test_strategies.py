"""Strategies: what they draw is valid, reaches the edges, and says how a failing example is seen again."""

import contextlib
import io
import json
import shlex

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from staticfire.engine.config.draft import KEYWORD_OF
from staticfire.engine.ready.response import decode, encode
from staticfire.harness.cli import main
from staticfire.harness.errors import InputError
from staticfire.harness.matrix import load
from staticfire.harness.plugin import strategies as sf
from staticfire.harness.probe.base import Accepted
from staticfire.harness.probe.reference import ReferenceProbe

QUICK = settings(max_examples=40)
PROBE = ReferenceProbe()


@given(drawn=sf.configurations("hybrid"))
@QUICK
def test_every_configuration_is_accepted(drawn):
    model, keywords = drawn
    assert isinstance(PROBE.ask(model, keywords), Accepted)


@given(drawn=sf.configurations("hybrid", model="jamba*", enable_prefix_caching=True))
@QUICK
def test_axes_narrow_the_configurations(drawn):
    model, keywords = drawn
    assert model.startswith("jamba")
    assert keywords["enable_prefix_caching"] is True


def test_configurations_go_beyond_the_rows_of_the_array():
    rows = {tuple(sorted(map(str, cell.axes.items()))) for cell in load("hybrid").cells()}

    def is_new(drawn):
        model, keywords = drawn
        fixed = load("hybrid").document.fixed
        axes = {name: keywords.get(name, "unset") for name in load("hybrid").document.axes if name != "model"}
        assert fixed.items() <= keywords.items()
        return tuple(sorted(map(str, {"model": model, **axes}.items()))) not in rows

    find(sf.configurations("hybrid"), is_new)


@pytest.mark.parametrize("axes", [{"modle": "x"}, {"model": "llama-tiny", "quantization": "experts_int8"}])
def test_axes_that_leave_nothing_are_told(axes):
    with pytest.raises(InputError, match=r"no axis named|no valid configuration"):
        find(sf.configurations("hybrid", **axes), lambda _: True)


@given(prompt=sf.prompts(100, block=16, chunk=64, longest=80))
@QUICK
def test_prompts_are_in_bounds(prompt):
    assert 1 <= len(prompt) <= 80
    assert all(3 <= token < 100 for token in prompt)


@pytest.mark.parametrize("length", [15, 16, 17, 63, 64, 65])
def test_prompts_reach_the_edges_of_blocks_and_chunks(length):
    assert len(find(sf.prompts(block=16, chunk=64, longest=80), lambda prompt: len(prompt) == length)) == length


@given(most=st.integers(1, 4), longest=st.integers(1, 40), first=st.integers(0, 5), data=st.data())
@QUICK
def test_families_share_beginnings_and_stay_in_bounds(most, longest, first, data):
    family = data.draw(sf.prompt_families(10, block=8, most=most, longest=longest, first=first))
    assert min(2, most) <= len(family) <= most
    assert all(1 <= len(prompt) <= longest for prompt in family)
    assert all(first <= token < 10 for prompt in family for token in prompt)


def test_families_repeat_a_prompt():
    assert find(sf.prompt_families(block=8, longest=40), lambda family: family[0] == family[1]) == [[3], [3]]


@pytest.mark.parametrize(
    ("strategy", "wanted", "simplest"),
    [
        (sf.prompts(), lambda _: True, [3]),
        (sf.prompts(block=16), lambda prompt: len(prompt) > 16, [3] * 17),
        (sf.prompt_families(), lambda _: True, [[3], [3]]),
        (sf.sequence_layouts(), lambda _: True, sf.SequenceLayout((1,), (0,), (0,), 1, 0)),
        (
            sf.sequence_layouts(block=16),
            lambda one: len(one.lengths) == 2 and sum(one.lengths) > 16,
            sf.SequenceLayout((1, 16), (0, 0), (0, 1), 2, 0),
        ),
    ],
    ids=["prompt", "long prompt", "family", "layout", "mixed layout"],
)
def test_what_fails_shrinks_to_the_simplest(strategy, wanted, simplest):
    assert find(strategy, wanted, settings=settings(max_examples=1000, database=None, derandomize=True)) == simplest


def test_configurations_and_cells_shrink_to_what_types_least():
    model, keywords = find(sf.configurations("hybrid", model="jamba-tiny"), lambda _: True)
    document = load("hybrid").document
    required = {name: values[0] for name, values in document.axes.items() if "unset" not in values and name != "model"}
    assert (model, keywords) == ("jamba-tiny", {**document.fixed, **required})
    assert find(sf.cells("hybrid"), lambda _: True) == next(c for c in load("hybrid").cells() if c.verdict == "valid")


@given(drawn=sf.configurations("hybrid"))
@settings(max_examples=15)
def test_the_line_that_explains_a_configuration_means_that_configuration(drawn):
    model, keywords = drawn
    program, verb, *arguments = shlex.split(sf.explain_line(model, keywords))
    assert (program, verb) == ("staticfire", "explain")
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert main(["explain", *arguments, "--json"]) == 0
    answer = json.loads(shown.getvalue())
    typed = {name: value["value"] for name, value in answer["values"].items() if value["source"] == "typed"}
    typed |= {change["field"]: change["typed"] for change in answer["rewrites"]}
    assert {KEYWORD_OF[name]: value for name, value in typed.items()} == keywords


def test_families_share_whole_blocks_and_more():
    find(sf.prompt_families(block=8, longest=40), lambda family: family[0][:8] == family[1][:8] != family[0])


@given(layout=sf.sequence_layouts(sequences=4, block=8, longest=20))
@QUICK
def test_layouts_are_consistent(layout):
    assert len(layout.lengths) == len(layout.starts) == len(layout.slots) == len(set(layout.slots))
    assert all(0 <= slot < layout.total_slots for slot in layout.slots)
    assert layout.cu_seqlens[-1] == sum(layout.lengths)
    assert list(layout.cu_seqlens) == sorted(layout.cu_seqlens)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda one: 0 in one.lengths and 1 in one.lengths and max(one.lengths) > 8,
        lambda one: one.total_slots > len(one.slots),
        lambda one: list(one.slots) != sorted(one.slots),
    ],
    ids=["mixed", "unused slots", "shuffled slots"],
)
def test_layouts_reach_what_breaks_kernels(wanted):
    find(sf.sequence_layouts(sequences=4, block=8, longest=20), wanted)


def test_layouts_without_empty_segments_have_none():
    with pytest.raises(NoSuchExample):
        find(sf.sequence_layouts(empty=False), lambda one: 0 in one.lengths, settings=QUICK)


@given(response=sf.ready_responses())
@QUICK
def test_ready_responses_cross_the_wire(response):
    assert decode(encode(response)) == response


def test_every_row_is_an_example_and_seeds_vary_beside_them():
    seen: set[object] = set()
    seeds: set[object] = set()

    @settings(max_examples=5)
    @sf.rows_as_examples("hybrid", model="llama-tiny", example={"seed": 0})
    @given(cell=sf.cells("hybrid", model="llama-tiny"), seed=st.integers(1, 1000))
    def rows(cell, seed):
        (seeds if seed else seen).add(seed or cell.id)

    rows()
    valid = {cell.id for cell in load("hybrid").cells() if cell.model == "llama-tiny" and cell.verdict == "valid"}
    assert seen == valid
    assert seeds


FAILING = """
    from hypothesis import given, settings
    from staticfire.harness.plugin import strategies as sf

    @given(drawn=sf.configurations("hybrid", model="jamba-tiny", block_size=32))
    def test_configuration(drawn):
        assert drawn[1]["block_size"] != 32

    @given(cell=sf.cells("toy.toml", model="llama-tiny", block_size=16))
    def test_cell(cell):
        assert cell.axes["block_size"] != 16
"""


def test_a_failing_example_says_how_to_see_it_again(suite):
    suite.write("test_it.py", FAILING)
    text = suite.run().text
    command = "staticfire explain jamba-tiny --like reference --max-model-len 512 --max-num-seqs 8"
    simplest = "--dtype float32 --block-size 32 --max-num-batched-tokens 64"
    assert f"reproduce: {command} {simplest}" in text
    assert "reproduce: staticfire run toy.toml --cell llama-tiny-" in text
