"""When what is typed counts: up to the making of an engine, and inside of what is held open around it."""

from pathlib import Path

import pytest

from staticfire.harness.scan.base import Configuration
from staticfire.harness.scan.scan import scan

HEAD = """
from contextlib import contextmanager
from unittest.mock import patch
import pytest
from vllm import LLM, EngineArgs, LLMEngine
from vllm.config import CacheConfig, CompilationConfig, ModelConfig, SpeculativeConfig, VllmConfig
"""


def read(folder: Path, body: str) -> list[Configuration]:
    (folder / "test_a.py").write_text(HEAD + body)
    return [item for site in scan([folder]).sites for item in site.configurations]


def values(item: Configuration) -> dict[str, object]:
    return {name: typed.value for name, typed in item.keywords.items()}


CHANGED_LATER = {
    "mapping": 'c = {"mode": 3}\n    LLM("m", compilation_config=c)\n    c["mode"] = 0',
    "inner mapping": 'c = {"p": {"x": 3}}\n    LLM("m", compilation_config=c)\n    c["p"]["x"] = 0',
    "list": 'c = [1]\n    LLM("m", compilation_config=c)\n    c.append(2)',
    "section": "c = VllmConfig(cache_config=CacheConfig(block_size=16))\n    c.cache_config.block_size = 32",
    "new section": "c = VllmConfig(seed=1)\n    c.speculative_config = SpeculativeConfig(method='ngram')",
    "configuration": 'c = CompilationConfig(mode=3)\n    LLM("m", compilation_config=c)\n    c.mode = 0',
    "arguments, once built": 'c = EngineArgs("m", seed=1)\n    c.create_engine_config()\n    c.seed = 2',
}


@pytest.mark.parametrize("body", CHANGED_LATER.values(), ids=CHANGED_LATER)
def test_a_change_after_the_engine_was_made_does_not_reach_it(body: str, tmp_path: Path) -> None:
    # A second site keeps the changes from being left out as mattering to none.
    whole = f"def test_a():\n    {body}\n    LLM('after', compilation_config=c)\n"
    before = f"def test_a():\n    {body.rpartition(chr(10))[0]}\n"
    first, _ = read(tmp_path, whole)
    (alone,) = read(tmp_path, before)
    assert values(first) == values(alone) != {}


def test_a_change_before_arguments_are_built_reaches_the_engine(tmp_path: Path) -> None:
    body = "    a = EngineArgs('m', seed=1)\n    a.seed = 2\n    a.create_engine_config()\n"
    (item,) = read(tmp_path, f"def test_a():\n{body}")
    assert values(item) == {"seed": 2}


def test_one_way_through_a_test_changes_no_parameter_of_another(tmp_path: Path) -> None:
    items = read(
        tmp_path,
        """
@pytest.mark.parametrize("c", [CompilationConfig(mode=3)])
def test_a(c, flag):
    if flag:
        c.mode = 0
    LLM("m", compilation_config=c)
""",
    )
    assert sorted(str(values(item)) for item in items) == [
        "{'compilation_config': {'mode': 0}}",
        "{'compilation_config': {'mode': 3}}",
    ]


HELD_OPEN = """
@pytest.fixture(autouse=True)
def always(monkeypatch):
    with monkeypatch.context() as inner:
        inner.setenv("A", "1")
        yield
@contextmanager
def sometimes(monkeypatch):
    with monkeypatch.context() as inner:
        inner.setenv("B", "2")
        yield
@contextmanager
def refused():
    with pytest.raises(ValueError, match="inner"):
        yield
def test_a(monkeypatch):
    LLM("before")
    with sometimes(monkeypatch):
        LLM("inside")
    LLM("behind")
    with refused():
        LLM("refused")
    LLM("after")
"""


def test_what_stands_at_its_yield_holds_its_contexts_open(tmp_path: Path) -> None:
    found = {str(item.model): (values(item), item.negative) for item in read(tmp_path, HELD_OPEN)}
    assert {name: variables for name, (variables, _) in found.items()} == {
        "before": {"env:A": "1"},
        "inside": {"env:A": "1", "env:B": "2"},
        "behind": {"env:A": "1"},
        "refused": {"env:A": "1"},
        "after": {"env:A": "1"},
    }
    assert [name for name, (_, negative) in found.items() if negative is not None] == ["refused"]


@pytest.mark.parametrize("build", ["args.create_engine_config()", "LLMEngine.from_engine_args(args)"])
def test_what_surrounds_the_building_of_arguments_is_what_surrounds_the_site(build: str, tmp_path: Path) -> None:
    items = read(
        tmp_path,
        f"""
def test_expected():
    args = EngineArgs("expected")
    with pytest.raises(ValueError, match="later"):
        engine = {build}
def test_replaced():
    args = EngineArgs("replaced")
    with patch.object(ModelConfig, "is_moe", True):
        engine = {build}
def test_first():
    args = EngineArgs("first")
    engine = {build}
    with pytest.raises(ValueError, match="later"):
        engine = {build}
def test_other():
    args, other = EngineArgs("other"), 3
    with pytest.raises(ValueError, match="later"):
        engine = {build.replace("args", "other")}
""",
    )
    expected = {str(item.model): item.negative.match if item.negative else None for item in items}
    assert expected == {"expected": "later", "replaced": None, "first": None, "other": None}
    assert [str(item.model) for item in items if item.patched] == ["replaced"]
