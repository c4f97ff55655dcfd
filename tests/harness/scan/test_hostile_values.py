# ruff: noqa: E501 -- hostile sources, one a line
"""Values that would cost without bound if they were computed: each ends soon, in little memory, and says so."""

import gc
import time
import tracemalloc
from pathlib import Path

import pytest

from staticfire.harness.scan.base import Scan, Unknown, holds_unknown
from staticfire.harness.scan.scan import scan

VALUES = [
    "10**5000", "2**10**9", "1 << 10**9", "-(10**4000) * 10**4000", "1e400", "float('nan')", "-1e400", "int('9' * 10**9)",
    "'a' * 10**9", "[0] * 10**9", "(0,) * 10**9", "b'a' * 10**9", "list(range(10**12))", "sum(range(10**12))",
    "sorted(range(10**12))", "max(range(10**12))", "len(range(10**12))", "tuple(range(10**12))", "set(range(10**12))",
    "[x for x in range(10**12)]", "{x: x for x in range(10**12)}", "dict.fromkeys(range(10**12))",
    "'{:>1000000000}'.format(1)", "f'{1:>1000000000}'", "'%1000000000d' % 1", "'a'.ljust(10**9)", "'a'.center(10**9)",
    "'a'.zfill(10**9)", "'\\t'.expandtabs(10**9)", "'x'.replace('x', 'y' * 99999).replace('y', 'z' * 99999)",
    "__import__('itertools').product(range(99), repeat=99)", "list(itertools.permutations(range(12)))",
    "list(itertools.combinations(range(64), 32))", "list(itertools.product([1], repeat=10**9))", "divmod(10**4000, 3)",
    "math.prod([10**1000] * 1000)", "round(10**4000, -10**9)", "pow(10, 10**9)", "10.0 ** 10**9", "str(10**1200) * 10**6",
    "int.from_bytes(b'a' * 10**9)", "chr(10**9)", "hash('a' * 10**9)", "bytes(10**12)", "bytearray(10**12)",
    "sum([[0] * 9999] * 999, [])", "json.dumps([0] * 99999) * 99", "repr([[0] * 999] * 999)", "'-'.join(['a' * 9999] * 9999)",
]  # fmt: skip


def read(folder: Path, text: str) -> Scan:
    (folder / "test_a.py").write_text(f"import itertools, json, math, pytest\nfrom vllm import LLM\n{text}")
    gc.collect()
    tracemalloc.start()
    start = time.process_time()
    result = scan([folder])
    spent = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000_000
    assert spent < 10
    return result


@pytest.mark.parametrize("value", VALUES)
def test_in_a_call(value: str, tmp_path: Path) -> None:
    result = read(tmp_path, f"def test_a():\n    LLM('m', seed={value}, dtype='half')\n")
    (site,) = result.sites
    (item,) = site.configurations
    assert item.model == "m"
    assert item.keywords["dtype"].value == "half"
    assert len(repr(item.keywords["seed"].value)) < 10_000


@pytest.mark.parametrize("value", VALUES)
def test_as_a_parameter(value: str, tmp_path: Path) -> None:
    text = f"@pytest.mark.parametrize('n', [1, {value}])\ndef test_a(n):\n    LLM('m', seed=n)\n"
    (site,) = read(tmp_path, text).sites
    assert all(len(item.params) < 10_000 for item in site.configurations)
    assert len(site.configurations) in {1, 2}


@pytest.mark.parametrize("value", ["list(range(10**12))", "range(10**12)", "[0] * 10**9", "itertools.count()"])
def test_as_all_parameters(value: str, tmp_path: Path) -> None:
    result = read(tmp_path, f"@pytest.mark.parametrize('n', {value})\ndef test_a(n):\n    LLM('m', seed=n)\n")
    (site,) = result.sites
    assert len(site.configurations) <= 256
    # What was left out is counted, or the value is said to be unknown: never one that looks complete.
    assert site.truncated or all(isinstance(item.keywords["seed"].value, Unknown) for item in site.configurations)


SHAPES = {
    "list in itself": "x = [1]\n    x.append(x)\n    LLM('m', hf_overrides=x)",
    "dict in itself": "x = {'a': 1}\n    x['x'] = x\n    LLM('m', hf_overrides=x, seed=x == x)",
    "lists in each other": "x, y = [], []\n    x.append(y)\n    y.append(x)\n    LLM('m', hf_overrides=x, seed=x == y)",
    "list in itself, printed": "x = [1]\n    x.append(x)\n    LLM('m', revision=f'{x}', tokenizer=str(x))",
    "object in itself": "class A:\n        pass\n    x = A()\n    x.x = x\n    LLM('m', hf_overrides=x.x.x.x)",
    "doubling": "x = [1, 2]\n    for _ in range(60):\n        x += x\n    LLM('m', hf_overrides=x)",
    "doubling dicts": "x = {}\n    for i in range(60):\n        x = {'a': x, 'b': x}\n    LLM('m', hf_overrides=x)",
    "squaring": "x = 10\n    for _ in range(60):\n        x = x * x\n    LLM('m', seed=x)",
    "nested expression": "LLM('m', seed=" + "(" * 60 + "1" + ")" * 60 + ", max_num_seqs=" + "+".join(["1"] * 900) + ")",
    "nested lists": "LLM('m', hf_overrides=" + "[" * 80 + "]" * 80 + ")",
    "nested conditions": "LLM('m', seed=" + "1 if x() else " * 60 + "2)",
    "nested lambdas": "f = lambda n: f(n + 1)\n    LLM('m', seed=f(0))",
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name: str, tmp_path: Path) -> None:
    result = read(tmp_path, f"def test_a():\n    {SHAPES[name]}\n")
    assert len(result.sites) == 1
    assert result.sites[0].configurations[0].model == "m" or result.unread


RECURSIVE = {
    "wrapper": "class A:\n    def __init__(self, n, **kw):\n        self.inner = A(n + 1, **kw)\n        LLM('m', seed=n)\n",
    "super": "class A:\n    def __init__(self, n):\n        super().__init__(n)\n        A.__init__(self, n)\n        LLM('m', seed=n)\n",
    "cycle": "class A(B):\n    pass\nclass B(A):\n    def __init__(self, n):\n        super().__init__(n)\n        LLM('m', seed=n)\n",
    "match": "class A:\n    def __init__(self, n):\n        match n:\n            case [x, *y] | x:\n                A(y)\n        LLM('m', seed=n)\n",
    "partial": "from functools import partial\nA = partial(A, 1)\nclass A:\n    def __init__(self, n):\n        LLM('m', seed=n)\n",
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_recursive_wrappers_end(name: str, tmp_path: Path) -> None:
    result = read(tmp_path, RECURSIVE[name] + "def test_a():\n    A(1)\n")
    assert any(site.form == "LLM" for site in result.sites)


def test_open_matches_are_followed_up_to_the_limit_of_ways(tmp_path: Path) -> None:
    cases = "".join(f"        case '{index}':\n            n = {index}\n" for index in range(300))
    result = read(tmp_path, f"def test_a(x):\n    match x.kind():\n{cases}    LLM('m', seed=n)\n")
    (site,) = result.sites
    assert len(site.configurations) <= 256
    assert site.truncated or any(holds_unknown(item.keywords["seed"].value) for item in site.configurations)
