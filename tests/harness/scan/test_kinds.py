"""`isinstance` and class patterns: what reading decides is what Python decides, over values of every sort."""

import collections.abc
import enum
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from staticfire.harness.scan.base import Constant, ScanConfig
from staticfire.harness.scan.scan import scan

ENGINE = """
class Mode(enum.IntEnum):
    NONE = 0
    COMPILE = 3
@dataclass
class CompilationConfig:
    mode: int = 0
@dataclass
class PassConfig:
    fuse: bool = False
class EngineArgs:
    pass
class AsyncEngineArgs(EngineArgs):
    pass
"""
OWN = """
class Plain:
    pass
class Listed(list):
    pass
class Derived(Plain):
    pass
class Color(enum.Enum):
    RED = 1
class Name(str, enum.Enum):
    X = "x"
"""
VALUES = (
    "None", "True", "3", "2.5", "'text'", "f'a{len(path)}'", "b'x'", "[1]", "(1,)", "{'a': 1}", "{1}", "Plain()",
    "Listed()", "Derived()", "Color.RED", "Name.X", "CompilationConfig(mode=3)", "PassConfig()", "AsyncEngineArgs()",
    "Mode.COMPILE",
)  # fmt: skip
KINDS = (
    "object", "str", "int", "float", "bool", "list", "dict", "tuple", "set", "Sequence", "Mapping", "Iterable", "Plain",
    "Color", "Name", "CompilationConfig", "PassConfig", "EngineArgs", "AsyncEngineArgs", "Mode",
)  # fmt: skip
DECIDED = {
    "CompilationConfig(mode=3)": {"CompilationConfig"},
    "Mode.COMPILE": {"Mode", "CompilationConfig", "PassConfig", "EngineArgs", "AsyncEngineArgs"},
    "Plain()": {"Plain", "str", "dict", "object"},
    "Color.RED": {"Color"},
    "[1]": set(KINDS) - {"Name"},
    "'text'": set(KINDS) - {"Name"},
    "None": set(KINDS) - {"Name"},
}
"""Value -> kinds that reading has to decide about; elsewhere it may leave the question open."""
IMPORTS = """
import enum
from collections.abc import Iterable, Mapping, Sequence
from vllm import LLM
from vllm.config import AsyncEngineArgs, CompilationConfig, EngineArgs, Mode, PassConfig
"""


def python_says(value: str, kind: str) -> bool:
    names: dict[str, Any] = {"enum": enum, "dataclass": dataclass, "path": ""}
    names.update((name, getattr(collections.abc, name)) for name in ("Iterable", "Mapping", "Sequence"))
    exec(ENGINE + OWN, names)
    return bool(eval(f"isinstance({value}, {kind})", names))


def reading_says(folder: Path, questions: list[tuple[str, str]], form: str) -> list[set[bool]]:
    """The answers that reading follows for each question: one where it decides, both where it cannot."""
    tests = "".join(
        f"def test_{index}(path):\n    x = {value}\n{form.format(kind=kind)}    LLM('m', seed=seed)\n"
        for index, (value, kind) in enumerate(questions)
    )
    (folder / "test_a.py").write_text(IMPORTS + OWN + tests)
    sites = [site for site in scan([folder]).sites if site.form == "LLM"]
    return [{item.keywords["seed"].value == 1 for item in site.configurations} for site in sites]


FORMS = {
    "isinstance": "    seed = 1 if isinstance(x, {kind}) else 2\n",
    "either": "    seed = 1 if isinstance(x, ({kind}, range)) else 2\n",
    "match": "    match x:\n        case {kind}():\n            seed = 1\n        case _:\n            seed = 2\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", VALUES)
def test_what_reading_decides_is_what_python_decides(value: str, form: str, tmp_path: Path) -> None:
    questions = list(itertools.product([value], KINDS))
    for (_, kind), found in zip(questions, reading_says(tmp_path, questions, FORMS[form]), strict=True):
        truth = python_says(value, kind)
        assert truth in found, kind
        open_ = form == "either" or kind not in DECIDED.get(value, ())
        assert found == {truth} or (open_ and len(found) == 2), kind


def test_a_configuration_is_not_taken_for_what_it_is_made_of(tmp_path: Path) -> None:
    """A helper takes either a mode or a whole configuration, and makes the second out of the first."""
    (tmp_path / "test_a.py").write_text(f"""{IMPORTS}
import pytest
def run(given, model):
    config = given if isinstance(given, CompilationConfig) else CompilationConfig(mode=given)
    LLM(model, compilation_config=config)
@pytest.mark.parametrize("given", [CompilationConfig(mode=Mode.COMPILE, compile_sizes=[1]), Mode.COMPILE])
def test_it(given):
    run(given, "m")
""")
    config = ScanConfig(constants={"Mode.COMPILE": Constant(3, 3, member=True)})
    (site,) = scan([tmp_path], config=config).sites
    assert [item.keywords["compilation_config"].value for item in site.configurations] == [
        {"mode": 3, "compile_sizes": [1]},
        {"mode": 3},
    ]
