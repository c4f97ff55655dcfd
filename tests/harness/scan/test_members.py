"""Members of enumerations and constants of classes: each reaches the engine as the value that it stands for."""

import enum
import json
from pathlib import Path
from typing import Any

import pytest

from staticfire.harness.check import constants
from staticfire.harness.scan.base import Constant, ScanConfig, Unknown
from staticfire.harness.scan.scan import scan

ENGINE = '''
import enum
from enum import Enum
from typing import ClassVar
class ShapesType(str, enum.Enum):
    """Kinds."""
    BACKED = "backed"
    UNBACKED = "unbacked"
class Level(enum.IntEnum):
    O2 = 2
class GraphMode(enum.Enum):
    FULL = 2
    BOTH = (FULL, 1)
    @classmethod
    def of(cls, value):
        return GraphMode[value.upper()]
class Plain(Enum):
    A = "a"
class SchedulerConfig:
    DEFAULT_TOKENS: ClassVar[int] = 2048
    tokens: int = DEFAULT_TOKENS
'''
OWN = """
import enum
from functools import partial
from vllm import LLM
from vllm.config import CacheConfig, GraphMode, Level, Plain, SchedulerConfig, ShapesType, Nameless
class Mode(str, enum.Enum):
    A = "align"
    B = "all"
class N(enum.IntEnum):
    ONE = 1
    TWO = 2
class Opaque(enum.Enum):
    X = "x"
"""


def engine_constants(folder: Path) -> dict[str, Constant]:
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "all.py").write_text(ENGINE)
    return dict(constants.constants(constants.read(folder)))


def value(folder: Path, expression: str, known: bool = True) -> Any:
    suite = folder / "suite"
    suite.mkdir(exist_ok=True)
    (suite / "test_a.py").write_text(f"{OWN}def test_a():\n    LLM('m', hf_overrides={{'x': {expression}}})\n")
    config = ScanConfig(constants=engine_constants(folder) if known else {})
    (site,) = scan([suite], config=config).sites
    found = site.configurations[0].keywords["hf_overrides"].value
    return found["x"] if isinstance(found, dict) else found


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("ShapesType.UNBACKED", "unbacked"),
        ("[{'y': ShapesType.UNBACKED}]", [{"y": "unbacked"}]),
        ("ShapesType.UNBACKED.value", "unbacked"),
        ("ShapesType.UNBACKED.name", "UNBACKED"),
        ("ShapesType('unbacked')", "unbacked"),
        ("ShapesType['UNBACKED']", "unbacked"),
        ("CacheConfig(kind=ShapesType.UNBACKED)", {"kind": "unbacked"}),
        ("Level.O2", 2),
        ("GraphMode.FULL", "FULL"),
        ("GraphMode.BOTH", "BOTH"),
        ("GraphMode.FULL.value", 2),
        ("Plain.A", "a"),
        ("SchedulerConfig.DEFAULT_TOKENS", 2048),
    ],
)
def test_names_of_the_engine(expression: str, wanted: Any, tmp_path: Path) -> None:
    assert value(tmp_path, expression) == wanted


@pytest.mark.parametrize(
    "expression", ["ShapesType.GONE", "ShapesType('other')", "SchedulerConfig.GONE", "Nameless.X", "CacheConfig(16)"]
)
def test_what_the_source_does_not_say_is_not_known(expression: str, tmp_path: Path) -> None:
    assert isinstance(value(tmp_path, expression), Unknown)


@pytest.mark.parametrize("expression", ["ShapesType.UNBACKED", "SchedulerConfig.DEFAULT_TOKENS"])
def test_without_the_source_no_name_is_taken_for_a_value(expression: str, tmp_path: Path) -> None:
    assert isinstance(value(tmp_path, expression, known=False), Unknown)


class Mode(str, enum.Enum):  # noqa: UP042 -- what the suite above defines, here as the oracle
    """As in `OWN`."""

    A = "align"
    B = "all"


class N(enum.IntEnum):
    """As in `OWN`."""

    ONE = 1
    TWO = 2


@pytest.mark.parametrize(
    "expression",
    [
        "Mode.A", "Mode.A.value", "Mode.A.name", "Mode('all')", "Mode['B']",
        "[Mode.A, {'y': Mode.B}]", "{Mode.A: N.ONE}",
        "N.TWO", "N(2)", "N.TWO * 8", "N.TWO + N.ONE", "int(N.TWO)", "'a' + Mode.A", "Mode.A == 'align'", "N.TWO > 1",
        "N.TWO == 2", "Mode.A is Mode.B", "Mode.A.upper()", "max(N.ONE, 3)", "1 if Mode.A in ('align', 'none') else 2",
        "Mode.A in [Mode.B]", "not N.TWO",
    ],
)  # fmt: skip
def test_members_that_the_suite_defines_are_what_python_makes_of_them(expression: str, tmp_path: Path) -> None:
    wanted = eval(expression, {"Mode": Mode, "N": N})
    assert value(tmp_path, expression) == json.loads(json.dumps(wanted))


@pytest.mark.parametrize("expression", ["f'{Mode.A}'", "str(Mode.A)", "Mode(x)", "Opaque.X + 'y'"])
def test_what_depends_on_the_version_of_python_is_not_known(expression: str, tmp_path: Path) -> None:
    assert isinstance(value(tmp_path, expression), Unknown)
