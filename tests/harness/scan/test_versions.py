"""Versions: compared as `packaging` compares them, and checks of them in sources."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging import version as packaging

from staticfire.harness.scan import versions
from staticfire.harness.scan.base import Scan, ScanConfig
from staticfire.harness.scan.scan import scan

RELEASE = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda numbers: ".".join(map(str, numbers)))
TEXTS = st.tuples(
    st.sampled_from(["", "v", "1!"]),
    RELEASE,
    st.sampled_from(["", "a1", ".alpha2", "b", "rc1", "-rc.2", "c3", "preview1"]),
    st.sampled_from(["", ".post1", "-2", ".rev3", "r4"]),
    st.sampled_from(["", ".dev0", "dev", ".dev20260101"]),
    st.sampled_from(["", "+cpu", "+cu128", "+g1a2b.3", "+1.2"]),
).map("".join)


def read(text: str) -> versions.Version:
    found = versions.parse(text)
    assert found is not None
    return found


@given(TEXTS, TEXTS)
def test_order_is_that_of_packaging(left: str, right: str) -> None:
    ours, theirs = [(read(text), packaging.Version(text)) for text in (left, right)]
    for one, other in ((ours, theirs), (theirs, ours)):
        assert (one[0] < other[0]) is (one[1] < other[1])
        assert (one[0] == other[0]) is (one[1] == other[1])
        assert (one[0] >= other[0]) is (one[1] >= other[1])
    for name in ("major", "minor", "micro", "release", "local"):
        expected = getattr(ours[1], name)
        assert ours[0].attribute(name) == (expected.lower() if isinstance(expected, str) else expected)


@given(st.text(st.sampled_from("0123456789.abrcdevpost!+-_ "), max_size=12))
def test_what_is_a_version_is_that_of_packaging(text: str) -> None:
    try:
        packaging.Version(text)
    except packaging.InvalidVersion:
        assert versions.parse(text) is None
    else:
        # Numbers of ten digits and more are read by packaging alone: no release has one.
        assert versions.parse(text) is not None or re.search(r"\d{10}", text)


HEAD = """
import importlib.metadata, sys
import pytest, torch, transformers, vllm
from importlib.metadata import version as installed
from packaging import version
from packaging.version import Version, parse
from transformers import __version__ as TRANSFORMERS_VERSION
from vllm import LLM, __version__ as VLLM
from vllm.utils.torch_utils import is_torch_equal_or_newer
TORCH_VERSION = version.parse(torch.__version__)
"""
KNOWN = {"vllm": "0.28.0", "torch": "2.12.0", "transformers": "5.24.0", "python": "3.12.4"}


def found(tmp_path: Path, text: str, known: dict[str, str]) -> Scan:
    (tmp_path / "test_a.py").write_text(HEAD + text)
    return scan([tmp_path], config=ScanConfig(versions=known))


CONDITIONS = [
    ('Version(vllm.__version__) >= Version("0.28")', True),
    ('Version(VLLM) < parse("0.28.0rc1")', False),
    ('TORCH_VERSION >= version.parse("2.9.0.dev")', True),
    ('TORCH_VERSION < version.parse("2.12")', False),
    ('Version(TRANSFORMERS_VERSION).base_version == "5.24.0"', True),
    ('parse(importlib.metadata.version("transformers")).major >= 6', False),
    ('Version(installed("torch")).release[:2] == (2, 12)', True),
    ("sys.version_info >= (3, 13)", False),
    ("sys.version_info.minor == 12", True),
    ("sys.version_info[:2] < (3, 13)", True),
    ('is_torch_equal_or_newer("2.13")', False),
    ('tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 12)', True),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_guards_on_known_versions_are_decided(condition: str, holds: bool, tmp_path: Path) -> None:
    text = f"@pytest.mark.skipif({condition}, reason='x')\ndef test_a():\n    LLM('m', seed=1 if {condition} else 2)\n"
    (site,) = found(tmp_path, text, KNOWN).sites
    assert [guard.decided for guard in site.guards] == [holds]
    (item,) = site.configurations
    assert item.keywords["seed"].value == (1 if holds else 2)
    assert not item.assumed


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_guards_on_unknown_versions_stay_open(condition: str, holds: bool, tmp_path: Path) -> None:
    text = f"@pytest.mark.skipif({condition}, reason='x')\ndef test_a():\n    LLM('m', seed=1 if {condition} else 2)\n"
    (site,) = found(tmp_path, text, {}).sites
    assert [guard.decided for guard in site.guards] == [None]
    assert {item.keywords["seed"].value for item in site.configurations} == {1, 2}
    assert holds in {True, False}


def test_a_branch_for_another_version_is_skipped_not_judged(tmp_path: Path) -> None:
    text = "def test_a():\n    if Version(VLLM) > Version('0.30'):\n        LLM('m')\n    else:\n        LLM('n')\n"
    old, new = found(tmp_path, text, KNOWN).sites
    assert [(guard.kind, guard.text, guard.decided) for guard in old.guards] == [
        ("skip", "Version(VLLM) > Version('0.30')", True)
    ]
    assert new.guards == ()


def test_versions_of_the_engine_decide_what_a_check_reads() -> None:
    from staticfire.harness.check.engines import Asked
    from staticfire.harness.check.reading import scan_config

    config = scan_config(Asked("h100-80gb"), {"torch": "2.12.0+cpu", "triton": ""})
    assert config.versions == {"torch": "2.12.0"}


def test_descriptions_of_choices_are_the_same_in_every_run(tmp_path: Path) -> None:
    text = "class A:\n    pass\nclass B:\n    pass\nif x.y():\n    C = A\nelse:\n    C = B\n"
    result = found(tmp_path, text + "def test_a():\n    LLM('m', seed=C.n, dtype='half' if C.z else 'float')\n", {})
    assumed = [text for site in result.sites for item in site.configurations for text in item.assumed]
    assert assumed
    assert not any("0x" in text or "object at" in text for text in assumed)
