# ruff: noqa: E501 -- hostile sources, one a line
"""What foreign text may cost: work in proportion to its length, and a bound for what would grow without one."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from staticfire.harness.scan.budget import ELEMENT, REASON, Budget, Exhausted, TooLarge
from staticfire.harness.scan.scan import scan

pytestmark = pytest.mark.slow

TEST = "import itertools, json\nfrom vllm import LLM\ndef test_a():\n"
AFTER = "\ndef test_z():\n    LLM('after', seed=7)\n"


def python(lines: str) -> tuple[str, str]:
    return "test_a.py", f"{TEST}{lines}    LLM('m', hf_overrides={{'x': x}}){AFTER}"


def shell(text: str) -> tuple[str, str]:
    return "a.sh", f"{text}\nvllm serve m --revision $x\nvllm serve after --seed 7\n"


NESTED = "    x = [0]\n" + "    x = [x] * 1000\n" * 4
BOMBS: dict[str, tuple[str, str]] = {
    "list of itself": python(NESTED),
    "equal": python(NESTED + "    y = x\n    x = 1 if [x] == [[y]] else x\n"),
    "contained": python(NESTED + "    x = [x] if x in [1, [x]] else x\n"),
    "printed": python(NESTED + "    x = f'{x}' + str(x) + repr(x)\n"),
    "hashed": python("    x = (0,)\n" + "    x = (x,) * 1000\n" * 4 + "    x = {x: 1, (x,): 2}\n    x = {x, 1}\n"),
    "module": ("test_a.py", f"from vllm import LLM\nx = [0]\n{'x = [x] * 1000' + chr(10)}" + "x = [x] * 1000\n" * 3 + f"def test_a():\n    LLM('m', hf_overrides={{'x': x}}){AFTER}"),
    "star": python("    x = '%0*d' % (10**9, 1)\n"),
    "precision": python("    x = '%.*f' % (10**9, 1.0)\n"),
    "width": python("    x = '{files:>999999999}'.format(files=1)\n"),
    "width in width": python("    x = '{:>{w}}'.format(1, w=10**9)\n"),
    "f-string": python("    w = 10**9\n    x = f'{1:>{w}}'\n"),
    "joined": python("    x = ','.join(['a' * 9999] * 9999)\n"),
    "replaced": python("    x = ('a' * 99999).replace('a', 'b' * 99999)\n"),
    "product": python("    x = list(itertools.product(range(99), range(99), range(99)))\n"),
    "repeat": python("    x = list(itertools.product(range(9), repeat=99))\n"),
    "doubled by calls": ("test_a.py", f"from vllm import LLM\ndef f(*a):\n    return [*a, *a]\ndef test_a():\n    x = [1]\n    for i in range(99):\n        x = f(*x)\n    LLM('m', hf_overrides={{'x': x}}){AFTER}"),
    "unknown pieces": python("    x = a()\n    for i in range(60):\n        x = x + 'a' + x\n"),
    "searched": python("    x = list(range(99999))\n    for i in range(900):\n        x.index(99998)\n    x = [x.index(99998)] * 99999\n"),
    "cut": python("    y = list(range(99999))\n    for i in range(900):\n        x = y[1:]\n"),
    "power": python("    x = 9 ** 9 ** 9 + (1 << 10 ** 10)\n"),
    "variable": shell("x=aaaaaaaa\n" + "x=$x$x$x$x\n" * 40),
    "unknown variable": shell("x=a$y\n" + "x=$x$x$x$x\n" * 40),
    "appended": shell("x=aaaaaaaa\n" + "x+=$x$x\n" * 60),
    "array": shell("a=(b c)\n" + 'a=("${a[@]}" "${a[@]}")\n' * 60 + "x=${a[1]}"),
    "calls": shell("f0() { x=1; }\n" + "".join(f"f{i}() {{ f{i - 1}; f{i - 1}; }}\n" for i in range(1, 40)) + "f39\nx=$y"),
    "braces": shell("for x in {1..9999}{1..9999} {1..999999999}; do :; done"),
    "one word": shell("x=" + "a" * 9_000_000),
}  # fmt: skip
YAML_LIST = (
    "a.yaml",
    "base: &b [" + ", ".join(f"--a{i}" for i in range(3000)) + "]\nall:\n"
    + "".join(f"- {{model: m/{i}, server_args: *b}}\n" for i in range(3000)),
)  # fmt: skip
CHILD = """
import json, resource, sys
from pathlib import Path
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.scan import scan
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (300, 300))  # no measure: only so that a bomb ends
for path in sys.argv[1:]:
    result = scan([path])
    seeds = [item.keywords["seed"].value for site in result.sites for item in site.configurations if item.model == "after"]
    print(json.dumps([len(result.sites), seeds, len(repr(result)), "too large to follow" in repr(result)]), flush=True)
"""


def test_bombs_end_in_little_memory_and_leave_the_rest_of_the_file_readable(tmp_path: Path) -> None:
    paths = []
    for number, (name, text) in enumerate([*BOMBS.values(), YAML_LIST]):
        (tmp_path / str(number)).mkdir()
        paths.append(tmp_path / str(number) / name)
        paths[-1].write_text(text)
    done = subprocess.run([sys.executable, "-c", CHILD, *map(str, paths)], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for name, (sites, seeds, size, _) in zip(BOMBS, rows, strict=False):
        assert sites == 2, name
        assert seeds == [7], name
        assert size < 200_000, name
    assert rows[-1][0] == 3000
    assert rows[-1][3]


@pytest.mark.parametrize("name", ["star", "width", "joined", "replaced", "cut", "product", "list of itself"])
def test_the_reason_is_told(name: str, tmp_path: Path) -> None:
    file, text = BOMBS[name]
    (tmp_path / file).write_text(text if name != "list of itself" else text.replace("* 4", "* 3"))
    (site, _) = scan([tmp_path]).sites
    assert REASON in repr(site) or "[x] * 1000" in repr(site)


def repeated(line: str, before: str = "", after: str = "") -> Callable[[int], tuple[str, str]]:
    return lambda n: (
        "a.sh",
        before + "".join(line.replace("@", str(i)) for i in range(n)) + after + "\nvllm serve m --seed $x\n",
    )


GROWING: dict[str, Callable[[int], tuple[str, str]]] = {
    "assignments": repeated("x@=1\n"),
    "one variable": repeated("x=$x\n"),
    "branches": repeated('if [ -n "$a" ]; then x@=1; else x@=2; fi\n'),
    "loops": repeated("while a; do x@=$x@; done\n"),
    "functions": repeated("f@() { x@=1; }\nf@\n"),
    "uncalled": repeated("f@() { vllm serve n@ --seed $x; }\n"),
    "sites": repeated("vllm serve n@ --seed 1\n"),
    "continued": repeated("--a@ 1 \\\n", "vllm serve m \\\n"),
    "open quotes": repeated('echo "$(\n'),
    "open documents": repeated("cat <<E@\n"),
    "documents": repeated("cat <<E@\ntext\nE@\n"),
    "words": repeated("a@ ", "echo "),
    "one word": repeated("a", "echo "),
    "quoted": repeated("a b ", "echo '", "'"),
    "exports": repeated("export x=@\n"),
    "braces open": repeated("{", "echo "),
    "parentheses": repeated("(", "echo $"),
    "case": repeated("a@) x=1 ;; ", "case $a in ", " esac"),
    "array": repeated("a+=(@)\n"),
    "yaml commands": lambda n: ("a.yaml", "".join(f"- vllm serve m/{i}\n" for i in range(n))),
    "yaml lists": lambda n: ("a.yaml", "".join(f"- [vllm, serve, m/{i}]\n" for i in range(n))),
    "yaml text": lambda n: ("a.yaml", "a: |\n" + "".join(f"  vllm serve m/{i}\n" for i in range(n))),
    "python sites": lambda n: ("test_a.py", "from vllm import LLM\n" + "".join(f"def test_{i}():\n    LLM('m', seed={i})\n" for i in range(n))),
    "python helpers": lambda n: ("test_a.py", "from vllm import LLM\n" + "".join(f"def h{i}():\n    LLM('m', seed={i})\n" for i in range(n))),
    "python statements": lambda n: ("test_a.py", "from vllm import LLM\ndef test_a():\n" + "".join(f"    x{i} = {i}\n" for i in range(n)) + "    LLM('m', seed=x1)\n"),
    "python list": lambda n: ("test_a.py", "from vllm import LLM\ndef test_a():\n    LLM('m', hf_overrides=[" + "1, " * n + "])\n"),
    "python text": lambda n: ("test_a.py", f"from vllm import LLM\ndef test_a():\n    LLM('m', revision='{'a' * n}'.replace('a', 'b'))\n"),
    "python parameters": lambda n: ("test_a.py", f"import pytest\nfrom vllm import LLM\n@pytest.mark.parametrize('n', {list(range(n))})\ndef test_a(n):\n    LLM('m', seed=n)\n"),
}  # fmt: skip


def cost(folder: Path, made: tuple[str, str]) -> tuple[int, int]:
    """Calls of functions, Python's own among them, and bytes at the peak, of reading one file."""
    name, text = made
    folder.mkdir()
    (folder / name).write_text(text)
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    tracemalloc.start()
    sys.setprofile(count)
    try:
        scan([folder])
    finally:
        sys.setprofile(None)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return calls, peak


@pytest.mark.parametrize("name", GROWING)
def test_cost_grows_no_faster_than_the_text(name: str, tmp_path: Path) -> None:
    single = name in {"one word", "quoted", "words", "braces open", "parentheses", "python text", "python list"}
    size = 4_000 if single else 60
    cost(tmp_path / "first", GROWING[name](2))  # what the first scan of a process sets up
    costs = [cost(tmp_path / str(factor), GROWING[name](size * factor)) for factor in (1, 2, 4)]
    for one, four in zip(costs[0], costs[2], strict=True):
        assert four <= 4.8 * one, costs


def test_nothing_is_charged_that_is_refused() -> None:
    budget = Budget(2, 100, 50)
    with pytest.raises(TooLarge):
        budget.make(51)
    budget.make(50)
    budget.make(50)
    with pytest.raises(TooLarge):
        budget.make(1)
    assert budget.memory == 0
    budget.step(2)
    with pytest.raises(Exhausted):
        budget.step()
    with pytest.raises(TooLarge):
        Budget(0, 100, 2 * ELEMENT - 1).elements(2)


def test_a_budget_that_is_spent_is_said(tmp_path: Path) -> None:
    loops = "for a in {1..200}; do for b in {1..200}; do x=$a$b; done; done\n"
    (tmp_path / "a.sh").write_text(loops * 2 + "vllm serve m\n")
    (note,) = scan([tmp_path]).unread
    assert note.why == "evaluation was cut off"


def test_many_variables_that_may_have_changed_again_and_again(tmp_path: Path) -> None:
    lines = "".join(f"A{number}=1; eval x\n" for number in range(8_000))
    (tmp_path / "a.sh").write_text(f"vllm serve before\n{lines}vllm serve after --seed $A1\n")
    found = scan([tmp_path])
    assert [str(site.configurations[0].model) for site in found.sites] == ["before", "after"]
    assert not found.sites[1].configurations[0].complete


def test_no_script_is_cut_off_for_its_length(tmp_path: Path) -> None:
    line = "echo step $N of a long script\n"
    (tmp_path / "a.sh").write_text("vllm serve before\n" + line * 30_000 + "vllm serve after\n")
    steps = "".join(f"  - command: |\n      vllm serve m{number}\n" + f"      {line}" * 3_000 for number in range(8))
    (tmp_path / "b.yaml").write_text(f"steps:\n{steps}")
    found = scan([tmp_path])
    assert not found.unread
    assert len(found.sites) == 10
