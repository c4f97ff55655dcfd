"""Models are lent to one borrower at a time, kept up to a number, and known by the files they were read from."""

import gc
import os
import weakref
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.llm import LLM
from staticfire.engine.models.base import Decoder
from staticfire.engine.worker.shelf import Shelf, loading_from, stamp
from staticfire.harness.models.make import ensure

PROMPT = [5, 6, 7]


class Model:
    def __init__(self, key):
        self.key = key


STEPS = st.lists(st.one_of(st.tuples(st.just("borrow"), st.integers(0, 3)), st.tuples(st.just("back"), st.integers(0))))


@given(capacity=st.integers(1, 3), steps=STEPS)
def test_a_model_is_lent_once_and_what_was_given_back_last_is_kept(capacity, steps):
    shelf: Shelf[Model] = Shelf(capacity)
    kept: list[int] = []  # the oracle's: keys, oldest first
    out: list[Model] = []
    loads: list[int] = []
    for step, number in steps:
        if step == "borrow":
            if number in kept:
                kept.remove(number)
            else:
                loads.append(number)
                kept = kept[max(0, len(kept) - (capacity - 1)) :]
            model = shelf.borrow(number, partial(Model, number))
            assert model.key == number
            assert all(model is not other for other in out)
            out.append(model)
        elif out:
            model = out.pop(number % len(out))
            shelf.give_back(model)
            shelf.give_back(model)  # the second time it is not theirs to give
            kept = [key for key in kept if key != model.key] + [model.key]
            kept = kept[-capacity:]
        assert shelf.loads == loads
    shelf.clear()
    shelf.borrow(0, lambda: Model(0))
    assert shelf.loads == [*loads, 0]


def test_a_model_goes_before_the_next_is_loaded_and_a_stranger_is_not_kept():
    shelf: Shelf[Model] = Shelf()
    shelf.give_back(Model("stranger"))
    first = shelf.borrow("a", lambda: Model("a"))
    gone = weakref.ref(first)
    shelf.give_back(first)
    del first

    def load():
        gc.collect()
        assert gone() is None, "two models at once"
        return Model("b")

    shelf.borrow("b", load)
    assert shelf.borrow("stranger", lambda: Model("new")).key == "new"


def test_a_failed_load_leaves_nothing_behind():
    shelf: Shelf[Model] = Shelf()

    def fail() -> Model:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        shelf.borrow("a", fail)
    assert shelf.loads == []
    assert shelf.borrow("a", lambda: Model("a")).key == "a"


@pytest.mark.parametrize("change", ["touched", "replaced", "longer", "added"])
def test_a_stamp_changes_with_every_file(tmp_path, change):
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"x" * 8)
    before = stamp(tmp_path)
    assert stamp(tmp_path) == before
    if change == "touched":
        os.utime(file, ns=(1, 1))
    elif change == "replaced":
        (tmp_path / "new").write_bytes(b"y" * 8)
        (tmp_path / "new").replace(file)
    elif change == "longer":
        file.write_bytes(b"x" * 9)
    else:
        (tmp_path / "config.json").touch()
    assert stamp(tmp_path) != before


@pytest.mark.engine
@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"block_size": 32, "max_num_seqs": 3}, True),
        ({"mamba_cache_mode": "none", "enable_prefix_caching": False}, True),
        ({"dtype": "float64"}, False),
        ({"quantization": "experts_int8"}, False),
        ({"max_model_len": 96}, False),
        ({"load_format": "dummy"}, False),
        ({"load_format": "dummy", "seed": 1}, False),
    ],
    ids=str,
)
def test_an_engine_borrows_just_the_model_it_would_load(changed, same):
    shelf: Shelf[Decoder] = Shelf()
    folder, base = ensure("jamba-tiny"), {"max_model_len": 64, "dtype": "float32"}

    def run(typed):
        with loading_from(shelf):
            llm = LLM(folder, **base | typed)
        model = llm.core.runner.model
        tokens = llm.generate([PROMPT])[0].outputs[0].token_ids
        llm.close()
        shelf.give_back(model)
        return tokens

    run({})
    found = run(changed)
    assert len(shelf.loads) == (1 if same else 2)
    with LLM(folder, **base | changed) as alone:
        assert found == alone.generate([PROMPT])[0].outputs[0].token_ids
    assert len(shelf.loads) == (1 if same else 2), "an engine outside borrows nothing"
