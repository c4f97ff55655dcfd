"""Writes far from the worker's own class are reached: in layers that a loader makes, in helpers, behind wrappers."""

import pytest

CORE, CLIENT, WORKER, CONFIG, FRONT = (f"engine/{name}.py" for name in ("core", "client", "worker", "config", "front"))
QUIET = (WORKER, "cache.stride = cache.block", "pass")
"""The worker's own class writes nothing that would be found."""

LAYERS = """
from torch import nn
from engine.config import Cache, Whole
from engine.table import find


class Layer(nn.Module):
    def __init__(self, cache: Cache | None = None, prefix: str = ""):
        WRITE


class Other(nn.Module):
    def __init__(self, size: int):
        self.size = size


class Model(nn.Module):
    def __init__(self, *, whole: Whole, prefix: str = ""):
        make = Layer
        self.layers = [make(cache=whole.cache, prefix=str(index)) for index in range(4)]


def change(it):
    it.stride = 1


def pass_on(it, times):
    change(it)


def load(whole: Whole, found: type[nn.Module] | None = None) -> nn.Module:
    if found is None:
        found, _ = find(whole)
    return found(whole=whole, prefix="model")
"""
TABLE = """
import importlib
from torch import nn

MODELS = {"m": ("layers", "Model")}


def find(whole) -> tuple[type[nn.Module], str]:
    module, name = MODELS["m"]
    return getattr(importlib.import_module("engine." + module), name), name
"""
LOADS = [
    (WORKER, "Align.settle(whole)", "Align.settle(whole); load(whole)"),
    (
        WORKER,
        "from engine.config import Whole",
        "from engine.config import Whole\n        from engine.layers import load",
    ),
]
WIDTH = """            @property
            def width(self):
                return self.stride

            @width.setter
            def width(self, value):
                self.stride = value

            def labels"""
HELD = """
        class Holder:
            def __init__(self, whole: Whole):
                self.inside = Inside(whole)

            def __getattr__(self, asked):
                return getattr(self.inside, asked)

        class Inside:
            def __init__(self, whole: Whole):
                self.whole = whole

            def begin(self):
                self.whole.cache.stride = 1

        class Align:"""
ENUM = """from enum import Enum

        class Mode(Enum):
            ON = 1
            OFF = 2

        @dataclass
        class Cache:
            mode: Mode = Mode.ON"""
SHOWN = """
        class Shown:
            def __init__(self, whole: Whole):
                self.stride = whole.cache.stride

        class Summed:
            def __init__(self, whole: Whole):
                self.pool = whole.cache.pool

        class Front:"""
SHOWS = """made = []
                kind = Shown if self.whole else Summed
                made.append(kind)
                return [one(self.whole) for one in made]"""


@pytest.fixture
def with_layers(edited):
    def write(written, *edits):
        root = edited(QUIET, *LOADS, (CONFIG, "            def labels", WIDTH), *edits)
        (root / "layers.py").write_text(LAYERS.replace("WRITE", written))
        (root / "table.py").write_text(TABLE)
        return root

    return write


@pytest.fixture
def fields():
    from staticfire.harness.sync.source.audit import audit

    return lambda root: {finding.field: finding for finding in audit(root, processes=1).findings}


@pytest.mark.parametrize(
    "written",
    [
        "cache.stride = 1",
        "setattr(cache, 'stride', 1)",
        "object.__setattr__(cache, 'stride', 1)",
        "cache.width = 1",
        "mine = cache; mine.stride = 1",
        "self.cache = cache; self.cache.stride = 1",
        "change(cache)",
        "pass_on(cache, 2)",
        "change(it=cache)",
    ],
)
def test_a_layer_that_a_loader_makes_by_the_name_of_its_class_writes_in_the_worker(with_layers, fields, written):
    found = fields(with_layers(written))
    assert found.keys() == {"cache.stride"}
    assert found["cache.stride"].process == "worker"
    assert found["cache.stride"].write.path.endswith(("layers.py", "config.py"))


@pytest.mark.parametrize("written", ["pass", "Other(cache.stride)", "mine = Cache(); mine.stride = 1"])
def test_a_layer_that_writes_nothing_of_the_configuration_is_no_finding(with_layers, fields, written):
    assert not fields(with_layers(written))


def test_a_class_that_does_not_take_the_names_of_the_call_is_not_made(with_layers, fields):
    root = with_layers("pass", (CORE, "whole.model.length = 64", "whole.model.length = 64"))
    text = (root / "layers.py").read_text().replace("self.size = size", "Whole().cache.quiet = 1; self.it.quiet = 2")
    (root / "layers.py").write_text(text.replace("size: int", "it: Cache").replace("self.it", "it"))
    assert not fields(root)


def test_what_an_object_lacks_it_takes_from_the_one_that_it_holds(found):
    assert found(
        QUIET, (WORKER, "\n        class Align:", HELD), (WORKER, "Align.settle(whole)", "Holder(whole).begin()")
    ).keys() == {"cache.stride"}


def test_a_member_of_an_enumeration_is_a_value(found):
    named = ["cache.mode = type(cache.mode).OFF", "from enum import Enum"]
    assert found(
        (CONFIG, "@dataclass\n        class Cache:", ENUM), (WORKER, "cache.stride = cache.block", named[0])
    ).keys() == {"cache.mode"}


KEPT = "kept = cache.stride"


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        (f"{KEPT}; kept = 5 if cache.block else kept; cache.stride = kept", {"cache.stride"}),
        (f"{KEPT}\n                if kept: kept = cache.block\n                cache.stride = kept", {"cache.stride"}),
        (f"{KEPT}; kept += 1; cache.stride = kept", {"cache.stride"}),
        (f"{KEPT}; cache.stride = 1; cache.stride = kept", set()),
    ],
    ids=["another value", "another field", "counted on", "put back"],
)
def test_a_value_is_put_back_only_under_a_name_that_means_nothing_else(found, written, fields):
    assert found((WORKER, "cache.stride = cache.block", written)).keys() == fields


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ("cache.quiet = cache.quiet if cache.quiet is not None else 3", set()),
        ("cache.quiet = 3 if cache.quiet is None else cache.quiet", set()),
        ("cache.stride = cache.stride if cache.stride is not None else 3", {"cache.stride"}),
        ("cache.quiet = cache.quiet if cache.stride is not None else 3", {"cache.quiet"}),
    ],
)
def test_a_default_for_a_none_that_the_field_cannot_hold_settles_nothing(found, written, fields):
    assert found((WORKER, "cache.stride = cache.block", written)).keys() == fields


def test_a_class_out_of_a_collection_reads_what_its_constructor_reads(found):
    (finding,) = found(
        (FRONT, "\n        class Front:", SHOWN), (FRONT, "return self.whole.cache.labels()", SHOWS)
    ).values()
    assert finding.field == "cache.stride"
    assert "front.py" in finding.read.path


def test_a_read_of_an_object_of_known_type_is_named_before_one_by_name_alone(edited, fields):
    root = edited(
        (FRONT, "self.whole.cache.labels()", "peek(self), self.whole.cache.stride"),
        (FRONT, "\n        class Front:", "\n        from engine.a_peek import peek\n\n        class Front:"),
    )
    (root / "a_peek.py").write_text("def peek(it):\n    return it.cache.stride\n")
    annotated = "def f{0}(cache: Cache):\n    pass\n"
    named = "from engine.config import Cache\n\n" + "\n".join(annotated.format(index) for index in range(4))
    (root / "names.py").write_text(named)
    assert fields(root)["cache.stride"].read.path.endswith("front.py")
