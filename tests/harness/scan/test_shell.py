"""Shell scripts against bash itself: what it would start, with loops, arrays and branches; where each command is."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.harness.scan.base import Configuration, Location, Site, Unknown
from staticfire.harness.scan.scan import scan
from staticfire.harness.scan.shell import read_shell

BASH = shutil.which("bash")
RECORD = 'vllm() { shift; printf "%s\\036" "$@"; printf "\\035"; }\n'

needs_bash = pytest.mark.skipif(BASH is None, reason="bash says what a script starts")


def started(script: str) -> list[list[str]]:
    """The words after `vllm serve`, for each time that bash runs it."""
    assert BASH is not None
    done = subprocess.run([BASH, "-c", RECORD + script], capture_output=True, text=True, check=True, env={}, timeout=20)
    return [run.split("\036")[:-1] for run in done.stdout.split("\035")[:-1]]


def read(script: str) -> list[Configuration]:
    return [item.configuration for item in read_shell(script, "a.sh")[0]]


def words(item: Configuration) -> list[str]:
    assert item.words is not None
    return [item.model, *item.words]


SCRIPTS = {
    "words": "for m in a/1 b/2 c/3; do vllm serve $m --dtype half; done",
    "lines": 'for m in a/1 \\\n  b/2\ndo\n  vllm serve "$m" \\\n    --dtype half\ndone\nvllm serve d/4',
    "array": 'models=(a/1 "b/2")\nmodels+=(c/3)\nfor m in "${models[@]}"; do\n  vllm serve $m\ndone',
    "indices": 'm=(a/1 b/2)\nn=(1 2)\nfor i in "${!m[@]}"; do vllm serve "${m[$i]}" -tp ${n[i]}; done',
    "one element": "m=(a/1 b/2)\nvllm serve ${m[1]} --max-model-len ${#m[@]}",
    "nested": "for m in a/1 b/2; do\n  for n in 1 2; do\n    vllm serve $m -tp $n\n  done\ndone",
    "braces": "for n in {1..3}; do vllm serve m/{x,y} -tp $n; done".replace("m/{x,y}", "m/x"),
    "braces with words": "for m in m/{x,y}-7b; do vllm serve $m; done",
    "string of words": 'ALL="a/1 b/2"\nfor m in $ALL; do vllm serve $m; done',
    "after the loop": "for m in a/1 b/2; do :; done\nvllm serve $m",
    "assigned in the loop": 'n=0\nfor m in a/1 b/2; do\n  args=(--seed 1)\n  vllm serve $m "${args[@]}"\ndone',
    "growing": "args=()\nfor a in --enforce-eager --enable-lora; do args+=($a); vllm serve m/x ${args[@]}; done",
    "empty": "for m in; do vllm serve $m; done\nvllm serve m/x",
    "two on a line": "vllm serve a/1; vllm serve b/2 && vllm serve c/3",
    "prefix": "A=1 vllm serve a/1 --seed 3; A=2",
    "prefix is gone": "N=1\nN=2 true\nvllm serve a/1 -tp $N",
    "function of a keyword": "for m in done do; do vllm serve $m; done",
    "comment within": "vllm serve a/1 \\\n  --seed 3  # last",
}


@needs_bash
@pytest.mark.parametrize("name", SCRIPTS)
def test_what_bash_would_start_is_what_is_read(name: str) -> None:
    script = SCRIPTS[name]
    assert [words(item) for item in read(script)] == started(script)


NAMES = st.sampled_from(["m/a", "m/b", "m/c", "'m/d'", '"m/e"', "m/{f,g}"])
LOOPS = st.lists(st.lists(NAMES, min_size=1, max_size=4, unique=True), min_size=1, max_size=3)


@needs_bash
@settings(deadline=None, max_examples=25)
@given(LOOPS, st.booleans())
def test_loops_within_loops(loops: list[list[str]], arrays: bool) -> None:
    head, body, tail = "", "vllm serve x --tokenizer " + "/".join(f"$v{index}" for index in range(len(loops))), ""
    for index, names in enumerate(loops):
        listed = f'"${{a{index}[@]}}"' if arrays else " ".join(names)
        head += (f"a{index}=({' '.join(names)})\n" if arrays and "{" not in " ".join(names) else "") + ""
        listed = listed if "{" not in " ".join(names) else " ".join(names)
        head += f"for v{index} in {listed}\ndo\n"
        tail += "\ndone"
    script = head + body + tail
    assert [words(item) for item in read(script)] == started(script)


def test_each_turn_says_which_it_is() -> None:
    items = read("for m in a/1 b/2; do for n in 1 2; do vllm serve $m -tp $n; done; done")
    assert [item.params for item in items] == ["m=a/1,n=1", "m=a/1,n=2", "m=b/2,n=1", "m=b/2,n=2"]


def test_turns_that_make_no_difference_are_one() -> None:
    (item,) = read("for i in 1 2 3; do vllm serve a/1; done")
    assert (item.model, item.params) == ("a/1", "")


@pytest.mark.parametrize(
    "loop", ["for m in $(cat models)", "for m in $MODELS", "for m in configs/*.yaml", "for m", "while read -r m"]
)
def test_a_loop_over_what_is_not_known_is_read_once_and_open(loop: str) -> None:
    (item,) = read(f"m=known\n{loop}; do\n  vllm serve $m --seed 3\ndone < file")
    assert isinstance(item.model, Unknown)
    assert item.keywords["seed"].value == 3


def test_what_is_known_of_a_loop_is_followed_beside_what_is_not() -> None:
    items = read("for m in a/1 $OTHERS; do vllm serve $m; done")
    assert items[0].model == "a/1"
    assert isinstance(items[1].model, Unknown)


def candidates(script: str) -> tuple[object, ...]:
    (item,) = read(script)
    value = item.keywords["tensor_parallel_size"].value
    assert isinstance(value, Unknown)
    return value.candidates


@pytest.mark.parametrize(
    ("script", "values"),
    [
        ('N=2\nif [ -n "$A" ]; then\n  N=4\nfi\nvllm serve a/1 -tp $N', {2, 4}),
        ('if [ -n "$A" ]; then N=4; elif x; then N=8; else N=1; fi\nvllm serve a/1 -tp $N', {4, 8, 1}),
        ('N=2\ncase "$A" in\n  a) N=4 ;;\n  b)\n    N=8\n    ;;\nesac\nvllm serve a/1 -tp $N', {2, 4, 8}),
        ("case $A in\n  a) N=4 ;;\n  *) N=8 ;;\nesac\nvllm serve a/1 -tp $N", {4, 8}),
        ('N=2\n[ -n "$A" ] && N=4\nvllm serve a/1 -tp "$N"', {2, 4}),
        ("N=2\ngrep -q x y || N=4\nvllm serve a/1 -tp $N", {2, 4}),
        ("N=2\nwhile x; do N=4; done\nvllm serve a/1 -tp $N", {2, 4}),
    ],
)
def test_after_a_branch_either_value_may_hold(script: str, values: set[int]) -> None:
    assert set(candidates(script)) == values


def test_within_a_branch_its_own_value_holds() -> None:
    script = "if a; then\n  N=4\n  vllm serve a/1 -tp $N\nelse\n  N=8\n  vllm serve b/2 -tp $N\nfi"
    assert [item.keywords["tensor_parallel_size"].value for item in read(script)] == [4, 8]


def test_words_of_an_array_that_a_branch_changes_are_open() -> None:
    (item,) = read('A=(--seed 1)\nif x; then A+=(--enforce-eager); fi\nvllm serve a/1 "${A[@]}"')
    assert not item.complete


def test_loops_without_end_end() -> None:
    body = "vllm serve $a$b$c --seed 1\n"
    for name in "abcde":
        body = f"for {name} in {{1..400}}; do\n{body}done\n"
    found, (note,) = read_shell(body, "a.sh")
    assert found
    assert note.why == "evaluation was cut off"


def site_of(folder: Path, name: str, text: str) -> Site:
    (folder / name).write_text(text)
    (site,) = scan([folder / name]).sites
    return site


def span(text: str, where: Location) -> str:
    """What a file holds between the two ends of a place."""
    lines = text.split("\n")[where.line - 1 : where.end_line]
    lines[-1] = lines[-1][: where.end_column - 1]
    lines[0] = lines[0][where.column - 1 :]
    return "\n".join(lines)


SERVE = "vllm serve a/1 \\\n  --dtype half \\\n  # between\n  --seed 3"


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("a.sh", f"set -e\n\n  {SERVE}  # staticfire: allow X\nls\n", SERVE),
        ("a.sh", "cat <<EOF\nvllm serve x\nEOF\ncd x && \\\n  A=1 vllm serve a/1 > log\n", "A=1 vllm serve a/1"),
        ("a.sh", 'ARGS=(\n  --seed 1  # why\n)\nvllm serve a/1 "${ARGS[@]}"; ls', 'vllm serve a/1 "${ARGS[@]}"'),
        ("a.sh", "é='ü'; vllm serve a/1", "vllm serve a/1"),
        (
            "a.yaml",
            "steps:\n- |\n    set -e\n\n    vllm serve a/1 \\\n      --seed 3  # staticfire: x\n    ls\n- b\n",
            "vllm serve a/1 \\\n      --seed 3",
        ),
        (
            "a.yaml",
            "- command: >-  # folded\n    ls &&\n    vllm serve a/1\n    --seed 3\n\n- other: 1\n",
            "vllm serve a/1\n    --seed 3",
        ),
        ("a.yaml", "- ls; vllm serve a/1\n    --seed 3\n- b\n", "vllm serve a/1\n    --seed 3"),
        (
            "a.yaml",
            "- 'ls; vllm serve a/1\n    --tokenizer ''x'' --seed 3'\n",
            "vllm serve a/1\n    --tokenizer ''x'' --seed 3",
        ),
        ("a.yaml", '- "ls; vllm serve a/1\n    --seed 3 && b"\n', "vllm serve a/1\n    --seed 3"),
        ("a.yaml", '- "ls;\\t vllm serve a/1 --seed 3"\n', '"ls;\\t vllm serve a/1 --seed 3"'),
        ("a.yaml", "- command:\n  - vllm\n  - serve\n  - a/1\n\n- next: 1\n", "command:\n  - vllm\n  - serve\n  - a/1"),
    ],
)
def test_a_site_spans_its_command(name: str, text: str, command: str, tmp_path: Path) -> None:
    where = site_of(tmp_path, name, text).where
    assert span(text, where) == command
