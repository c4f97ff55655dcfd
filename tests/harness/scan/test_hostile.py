"""Sources that would do harm if they were run, or cost without bound if they were followed naively."""

import gc
import tracemalloc
from pathlib import Path

import pytest

from staticfire.harness.scan.base import Limits, Scan, ScanConfig
from staticfire.harness.scan.scan import scan

HARMFUL = """
import os, subprocess
from pathlib import Path
os.system("rm -f {marker}")
subprocess.run(["rm", "-f", "{marker}"])
Path("{marker}").unlink()
exec("import os; os.remove('{marker}')")
__import__("os").remove("{marker}")
from vllm import LLM
class Meta(type):
    def __new__(cls, *args):
        os.remove("{marker}")
@os.system("rm {marker}")
def test_a(x=os.remove("{marker}")):
    LLM("m/one", seed=os.remove("{marker}") or 3)
    eval("os.remove('{marker}')")
"""


def read(folder: Path, text: str | bytes, name: str = "test_a.py", **limits: int) -> Scan:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return scan([folder], config=ScanConfig(limits=Limits(**limits)))


def test_nothing_that_is_read_is_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    for name in ("test_a.py", "conftest.py", "helper.py"):
        (tmp_path / name).write_text(HARMFUL.format(marker=marker) + "from helper import *\n")
    (tmp_path / "run.sh").write_text(
        f"rm -f {marker}\nX=$(rm -f {marker}) vllm serve $(rm -f {marker}) `rm {marker}`\n"
    )
    (tmp_path / "a.yaml").write_text(
        f"!!python/object/apply:os.remove ['{marker}']\n---\nvllm: !!python/name:os.remove\n"
    )
    result = scan([tmp_path])
    assert marker.exists()
    assert {site.form for site in result.sites} == {"LLM", "shell"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from vllm import LLM\nLLM(\n", "not Python"),
        ("LLM(" + "(" * 5000 + ")" * 5001, "not Python|parsed"),
        ("LLM(1)\nx = " + "-" * 100_000 + "1", "not Python|parsed"),
        ("LLM(1)\nx = " + "+".join(["1"] * 60_000), "not Python|parsed"),
        ("LLM(1)\nx = [" + "1," * 1_000_000 + "]", "commas"),
        ("LLM(1)\nprint 'python 2'", "not Python"),
        ("{% for x in y %}\nLLM({{ x }})\n{% endfor %}", "not Python"),
        (b"LLM('\xff\xfe')", "parsed|not Python"),
        (b"LLM(1)\x00", "parsed|not Python"),
        ("#" * 10_000_001, "larger than"),
    ],
    ids=["cut", "brackets", "signs", "sum", "list", "old", "template", "bytes", "null", "large"],
)
def test_what_cannot_be_read_is_reported(text: str | bytes, why: str, tmp_path: Path) -> None:
    result = read(tmp_path, text)
    assert len(result.unread) == 1
    assert any(part in result.unread[0].why for part in why.split("|"))
    assert not result.sites


ENDLESS = {
    "recursion": "def f(n):\n    LLM('m', seed=n)\n    return f(n + 1)\ndef test_a():\n    f(0)\n",
    "mutual": "def f(n):\n    return g(n)\ndef g(n):\n    LLM('m', seed=f(n))\ndef test_a():\n    g(1)\n",
    "while": "def test_a():\n    n = 0\n    while True:\n        n += 1\n    LLM('m', seed=n)\n",
    "growth": "def test_a():\n    s = 'ab'\n    for _ in range(900):\n        s = s + s\n    LLM('m', tokenizer=s)\n",
    "power": "def test_a():\n    LLM('m', seed=9 ** 9 ** 9, max_num_seqs=1 << 10 ** 10)\n",
    "repeat": "def test_a():\n    LLM('m', hf_overrides=[0] * 10 ** 12, tokenizer='x' * 10 ** 12)\n",
    "format": "def test_a():\n    LLM('m', tokenizer=f'{1:1000000000}', revision='%1000000000d' % 1)\n",
    "range": "def test_a():\n    LLM('m', hf_overrides=list(range(10 ** 12)))\n",
    "product": "import itertools\ndef test_a():\n    LLM('m', hf_overrides=list(itertools.product(range(99), repeat=9)))\n",  # noqa: E501
    "nested": "def test_a():\n    x = []\n    for _ in range(100):\n        x = [x, x]\n    LLM('m', hf_overrides=x)\n",
    "branches": "def test_a(a):\n"
    + "".join(f"    if a.x{i}():\n        k{i} = {i}\n    else:\n        k{i} = 0\n" for i in range(60))
    + "    LLM('m', hf_overrides=["
    + ",".join(f"k{i}" for i in range(60))
    + "])\n",
    "loops": "def test_a():\n    n = 0\n"
    + "".join("    " * (i + 1) + f"for i{i} in range(99):\n" for i in range(8))
    + "    " * 9
    + "n += 1\n    LLM('m', seed=n)\n",
    "import itself": "from test_a import *\nfrom test_a import X\nX = X\ndef test_a():\n    LLM(X)\n",
    "bases": "class A(A):\n    pass\nclass B(A, B):\n    pass\ndef test_a():\n    LLM(B().x, seed=B.y)\n",
    "fixtures": "import pytest\n@pytest.fixture\ndef a(b):\n    return b\n@pytest.fixture\ndef b(a):\n    return a\ndef test_a(a):\n    LLM(a)\n",  # noqa: E501
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_sources_end(name: str, tmp_path: Path) -> None:
    gc.collect()
    tracemalloc.start()
    result = read(tmp_path, "from vllm import LLM\n" + ENDLESS[name])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (site,) = result.sites
    assert site.configurations
    assert peak < 200_000_000


def test_exponential_parameters_are_counted_not_made(tmp_path: Path) -> None:
    marks = "".join(f"@pytest.mark.parametrize('p{i}', range(10))\n" for i in range(20))
    names = ", ".join(f"p{i}" for i in range(20))
    result = read(
        tmp_path, f"import pytest\nfrom vllm import LLM\n{marks}def test_a({names}):\n    LLM('m', seed=p0)\n"
    )
    (site,) = result.sites
    assert len(site.configurations) == 256
    assert site.truncated == 10**9  # counted up to here


def test_yaml_that_multiplies_itself_is_read_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [vllm serve m/one]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    result = read(tmp_path, "\n".join(lines), "a.yaml")
    assert [site.configurations[0].model for site in result.sites] == ["m/one"]


@pytest.mark.parametrize(
    "text",
    ["vllm serve 'm", "vllm serve \\", 'X="', 'vllm serve ${A:-${B}} "', "A=(\nvllm serve m", "vllm serve m <<EOF"],
)
def test_broken_shell_ends(text: str, tmp_path: Path) -> None:
    result = read(tmp_path, text, "a.sh")
    assert len(result.sites) <= 1


@pytest.mark.parametrize(
    "text", ["vllm: [", "vllm: " + "[" * 3000, "vllm: {{ x }}\n  - y", "\tvllm: 1", "vllm: &a [*b]"]
)
def test_broken_yaml_is_reported(text: str, tmp_path: Path) -> None:
    result = read(tmp_path, text, "a.yaml")
    assert len(result.unread) == 1
