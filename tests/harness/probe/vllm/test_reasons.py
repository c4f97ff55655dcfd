"""Which values a refusal is about, read off the condition of the engine's own function."""

import dataclasses
import sys
import types

import pytest

from staticfire.harness.probe.vllm.agent import reasons

SOURCE = """
import dataclasses

@dataclasses.dataclass
class CacheConfig:
    mode: str = "none"
    enable_prefix_caching: bool = True
    sizes: list = dataclasses.field(default_factory=lambda: [1])
    other: int = 7

    @property
    def computed(self):
        raise SystemExit("a property was asked")

@dataclasses.dataclass
class VllmConfig:
    cache_config: CacheConfig
    unrelated: int = 3

class Plain:
    x = 1

def guarded(config, model_len):
    cache = config.cache_config
    if config.unrelated == 4:
        pass
    elif cache.enable_prefix_caching:
        for _ in range(2):
            if cache.mode != "none" and Plain.x and cache.computed is not None:
                assert not cache.sizes, (
                    f"mode {cache.mode} wants none of {model_len}"
                )

def caller(config, model_len):
    if config.cache_config.other > 1:
        fail("it is too large")

def fail(text):
    raise ValueError(text)
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    folder = tmp_path / "vllm"
    folder.mkdir()
    package = types.ModuleType("vllm")
    package.__path__ = [str(folder)]
    monkeypatch.setitem(sys.modules, "vllm", package)
    file = folder / "rules.py"
    file.write_text(SOURCE.replace(" and cache.computed is not None", ""))
    module = types.ModuleType("vllm.rules")
    monkeypatch.setitem(sys.modules, "vllm.rules", module)
    exec(compile(file.read_text(), str(file), "exec"), vars(module))
    return module


def caught(act, *arguments):
    with pytest.raises((AssertionError, ValueError)) as found:
        act(*arguments)
    return found.value


def test_conditions_around_the_line_and_the_message_say_which_values(engine):
    config = engine.VllmConfig(engine.CacheConfig(mode="align"))
    found = reasons.values(caught(engine.guarded, config, 4096), ["model_len"])
    assert found == [
        {"field": "vllm.unrelated", "value": 3, "default": True},
        {"field": "cache.enable_prefix_caching", "value": True, "default": True},
        {"field": "cache.mode", "value": "align", "default": False},
        {"field": "cache.sizes", "value": [1], "default": True},
        {"field": "model_len", "value": 4096, "default": False},
    ]


def test_a_local_variable_counts_only_where_it_has_the_name_of_what_is_typed(engine):
    config = engine.VllmConfig(engine.CacheConfig(mode="align"))
    found = reasons.values(caught(engine.guarded, config, 4096))
    assert "model_len" not in {one["field"] for one in found}


def test_a_helper_that_only_raises_leaves_the_word_to_its_caller(engine):
    config = engine.VllmConfig(engine.CacheConfig())
    (found,) = reasons.values(caught(engine.caller, config, 1))
    assert found == {"field": "cache.other", "value": 7, "default": True}


def test_nothing_is_computed_to_find_them(engine):
    held = engine.CacheConfig()
    assert "computed" not in {field.name for field in dataclasses.fields(held)}
    assert reasons.field_of(held, "computed") is None


def test_what_was_raised_outside_the_engine_is_about_nothing():
    assert reasons.values(caught(int, "x")) == []
