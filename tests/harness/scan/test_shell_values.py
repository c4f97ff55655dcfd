# ruff: noqa: E501 -- scripts, one a line
"""Values of shell variables: what a scan is certain of is what bash itself makes of the script."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from staticfire.harness.scan.base import Configuration, Unknown
from staticfire.harness.scan.shell import read_shell

BASH = shutil.which("bash")
STUB = r"""vllm() { local IFS=$' \t\n'; builtin echo "$*" >&9; }
"""
NAMES = ("A", "B", "TP")

pytestmark = pytest.mark.skipif(BASH is None, reason="bash is the oracle")


def printed(script: str) -> list[str]:
    """What the stub of vllm is called with, each time, in an empty folder without programs."""
    assert BASH is not None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
        number = os.dup(out.fileno())
        try:
            subprocess.run(
                [BASH, "--norc", "--noprofile", "-c", f"exec 9>&{number}\n{STUB}{script}\nwait"],
                pass_fds=[number], env={"PATH": ""}, cwd=folder, timeout=20, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            os.close(number)
        out.seek(0)
        return out.read().decode().splitlines()


def read(script: str) -> list[Configuration]:
    return [item.configuration for item in read_shell(script, "a.sh")[0]]


def tags(script: str) -> dict[str, set[str]]:
    """Tag of each command that bash runs -> the values that it has there."""
    found: dict[str, set[str]] = {}
    for line in printed(script):
        words = line.split(" ")
        assert words[0] == "serve"
        found.setdefault(words[1], set()).add(" ".join(words[2:]))
    return found


def claimed(script: str) -> Iterator[tuple[str, Any]]:
    """Tag of each command that is read, and its words, or what is known of its one flag."""
    for item in read(script):
        flag = item.keywords["seed"].value if "seed" in item.keywords else Unknown("absent")
        if item.full and item.words is not None:
            yield str(item.model), " ".join(item.words)
        elif not item.complete or isinstance(flag, Unknown):
            yield str(item.model), flag if item.complete else Unknown("open")
        else:
            yield str(item.model), "--seed" if flag is True else f"--seed {flag}"


def hold(script: str) -> None:
    """Nothing that is certain differs from bash, and no list of candidates leaves out what bash has."""
    real = tags(script)
    said: dict[str, list[Any]] = {}
    for tag, value in claimed(script):
        said.setdefault(tag, []).append(value)
    for tag, values in real.items():
        if tag not in said:
            continue
        known: set[str] = set()
        for value in said[tag]:
            if not isinstance(value, Unknown):
                known.add(str(value).strip())
            elif value.candidates:
                known.update(f"--seed {one}".strip() for one in value.candidates)
            else:
                break
        else:
            assert {one.strip() for one in values} <= known, (tag, values, known, script)


SCRIPTS = {
    "for arithmetic": "TP=3; for ((TP=1; TP<=2; TP*=2)); do vllm serve a --seed $TP; done; vllm serve b --seed $TP",
    "arithmetic": "TP=3; ((TP=5)); vllm serve a --seed $TP; ((TP++)); vllm serve b --seed $TP",
    "expansion assigns": "TP=3; echo $((TP=5)); vllm serve a --seed $TP",
    "default assigns": "TP=; echo ${TP:=5}; vllm serve a --seed $TP",
    "default": "vllm serve a --seed ${TP:-8}; TP=; vllm serve b --seed ${TP:-8}; vllm serve c --seed ${TP-8}0",
    "alternative": "TP=3; vllm serve a --seed ${TP:+4}; TP=; vllm serve b --seed 1${TP:+4}",
    "let": "TP=3; let TP=5; vllm serve a --seed $TP; let 'TP = TP * 2'; vllm serve b --seed $TP",
    "read": "TP=3; read TP <<< 5; vllm serve a --seed ${TP:-8}",
    "read into several": "TP=3; A=4; read A TP <<< '5 6'; vllm serve a --seed $TP",
    "mapfile": "TP=(1 2); mapfile -t TP <<< 5; vllm serve a --seed ${TP[0]}",
    "printf": "TP=3; printf -v TP '%d' 5; vllm serve a --seed $TP",
    "printf joined": "TP=3; printf -vTP '%d' 5; vllm serve a --seed $TP",
    "nameref": "TP=3; declare -n R=TP; R=5; vllm serve a --seed $TP",
    "integer": "declare -i TP; TP=2+3; vllm serve a --seed $TP",
    "getopts": "TP=3; set -- -x; getopts x TP; vllm serve a --seed $TP",
    "function": "TP=3; f() { TP=5; }; vllm serve a --seed $TP; f; vllm serve b --seed $TP",
    "local": "TP=3; f() { local TP=5; vllm serve a --seed $TP; }; f; vllm serve b --seed $TP",
    "return": 'TP=3; f() { TP=4; [ -n "$X" ] || return; TP=5; }; f; vllm serve a --seed $TP',
    "arguments": "f() { vllm serve a --seed $1; }; f 4; f 5; vllm serve b --seed ${1:-8}",
    "set": "set -- 4 5; vllm serve a --seed $2; shift; vllm serve b --seed $1",
    "eval": "TP=3; eval TP=5; vllm serve a --seed $TP; TP=6; vllm serve b --seed $TP",
    "source": "TP=3; . /dev/stdin <<< TP=5; vllm serve a --seed $TP",
    "subshell": "TP=3; (TP=5; vllm serve a --seed $TP); vllm serve b --seed $TP",
    "pipeline": "TP=3; echo 5 | { read TP; vllm serve a --seed $TP; }; vllm serve b --seed $TP",
    "pipeline assigns": "TP=3; TP=5 | :; vllm serve b --seed $TP",
    "last pipe": "shopt -s lastpipe; TP=3; echo 5 | read TP; vllm serve b --seed $TP",
    "background": "TP=3; { TP=5; } & vllm serve b --seed $TP",
    "unset": "TP=3; unset TP; vllm serve a --seed ${TP:-8}",
    "trap": "TP=3; trap 'TP=5' DEBUG; vllm serve a --seed $TP",
    "index": "TP=3; TP[0]=5; vllm serve a --seed $TP",
    "indices": "A=([2]=5 6); vllm serve a --seed ${A[0]}${A[2]}",
    "index assigns": "A=(1 2); TP=0; A[TP=1]=5; vllm serve a --seed $TP",
    "while": "TP=1; while ((TP<4)); do vllm serve a --seed $TP; TP=$((TP*2)); done; vllm serve b --seed $TP",
    "while and break": "TP=1; while :; do vllm serve a --seed $TP; TP=2; break; TP=3; done; vllm serve b --seed $TP",
    "continue": "for A in 1 2; do TP=$A; [ $A = 2 ] && continue; TP=9; done; vllm serve a --seed $TP",
    "for and continue": "TP=0; for A in 1 2; do vllm serve a --seed $TP; continue; TP=5; done; vllm serve b --seed $TP",
    "condition assigns": "TP=3; if TP=5; false; then :; else vllm serve a --seed $TP; fi; vllm serve b --seed $TP",
    "case falls": "case x in x) TP=5 ;& y) vllm serve a --seed ${TP:-8} ;; esac",
    "readonly": "readonly TP=3; TP=5; vllm serve a --seed $TP",
    "readonly line": "readonly TP=3\nTP=5\nvllm serve a --seed $TP",
    "and": "TP=3; false && TP=5; vllm serve a --seed $TP; true || TP=6; vllm serve b --seed $TP",
    "and and or": "TP=3; true && false || TP=5; vllm serve a --seed $TP",
    "prefix": "TP=3; TP=5 true; vllm serve a --seed $TP; TP=6 eval 'vllm serve b --seed 7'",
    "redirection": "TP=3; vllm serve a > /dev/null --seed $TP 2>&1",
    "redirection assigns": "TP=3; : > /dev/null$((TP=5)); vllm serve a --seed $TP",
    "here": "TP=3; cat <<EOF\n$((TP=5))\nEOF\nvllm serve a --seed $TP",
    "split": "IFS=,; TP=1,2; vllm serve a --seed $TP",
    "quotes": "TP='1 2'; vllm serve a --seed \"$TP\"; vllm serve b --seed $TP",
    "indirect": "A=TP; TP=3; vllm serve a --seed ${!A}; vllm serve b --seed ${TP#3}1; vllm serve c --seed ${TP/3/4}",
    "random": "RANDOM=3; vllm serve a --seed $RANDOM; SECONDS=77; OPTIND=5; vllm serve b --seed $OPTIND",
    "coprocess": "TP=3; coproc TP { :; }; vllm serve a --seed ${TP:-8}",
    "select": "TP=3; select TP in 4 5; do break; done <<< 1 2>/dev/null; vllm serve a --seed $TP",
    "command": "TP=3; command read TP <<< 5; vllm serve a --seed $TP; builtin printf -v TP 6; vllm serve b --seed $TP",
    "quoted builtin": "TP=3; \\read TP <<< 5; 'printf' -v A 6; vllm serve a --seed $TP; vllm serve b --seed ${A:-8}",
    "builtin in a variable": "TP=3; A=read; $A TP <<< 5; vllm serve a --seed $TP",
    "export": "export TP=3 A=$TP; vllm serve a --seed ${A:-8}; declare TP=4; vllm serve b --seed $TP",
    "append": "TP=1; TP+=2; vllm serve a --seed $TP; A=(1); A+=(2); vllm serve b --seed ${A[1]}",
    "value that is an expression": "A='TP=5'; TP=3; : $((A)); vllm serve a --seed $TP",
    "octal": "TP=010; A=$((TP+1)); vllm serve a --seed $A; vllm serve b --seed $((-7/2))$((-7%2))",
    "braces": "for TP in {1..3} {a,b}; do vllm serve a --seed $TP; done; vllm serve b --seed {1,2}",
    "tilde": "TP=~; vllm serve a --seed $TP",
    "nested function": "f() { g() { TP=5; }; }; TP=3; f; vllm serve a --seed $TP; g; vllm serve b --seed $TP",
    "function defined twice": "f() { TP=4; }; false && f() { TP=5; }; f; vllm serve a --seed $TP",
    "name of a variable made up": "A=TP; declare $A=5; vllm serve a --seed ${TP:-8}",
    "export in a subshell": "TP=3; (export TP=5); vllm serve a --seed $TP",
    "exit in a branch": 'TP=3; if [ -n "$X" ]; then TP=4; exit; fi; vllm serve a --seed $TP',
    "temporary": "f() { vllm serve a --seed $TP; }; TP=3; TP=5 f; vllm serve b --seed $TP",
    "command substitution": "TP=3; A=$(TP=5; echo 4); vllm serve a --seed $TP; vllm serve b --seed $A",
    "process substitution": "TP=3; : <(TP=5); vllm serve a --seed $TP",
    "descriptor": "TP=3; exec {TP}>/dev/null; vllm serve a --seed $TP; if :; then : {A}</dev/null; fi; vllm serve b --seed ${A:-8}",
    "compared": "TP=3; [[ TP=5 -eq 5 ]]; vllm serve a --seed $TP; A='TP=6'; [[ A -eq 6 ]]; vllm serve b --seed $TP",
    "integer of an expression": "TP=3; declare -i A='TP=5'; vllm serve a --seed $TP",
    "index that assigns": "A=(1 2); TP=3; printf -v 'A[TP=1]' 4; vllm serve a --seed $TP; unset 'A[TP=0]'; vllm serve b --seed $TP",
    "names of files": "cd /; vllm serve a --seed d?v; A='et[c]'; vllm serve b --seed $A; vllm serve c --seed \"$A\"",
    "body in a subshell": "f() ( TP=5 ); function g ( TP=6 ); TP=3; f; g; vllm serve a --seed $TP",
    "line of a document": "TP=3; : <<X\nX \nTP=5\nX\n: <<-Y\n Y\n\tTP=6\n\tY\nvllm serve a --seed $TP",
    "backquotes within": "TP=`echo \\`echo 3\\``; A=4; vllm serve a --seed $A; vllm serve b --seed $TP",
    "braces in an array": "A=({1..3} {a,b}); vllm serve a --seed ${A[1]}; vllm serve b --seed ${A[4]}; B=({1..9..2}); vllm serve c --seed ${B[1]}",
    "index of an array assigns": "TP=3; A=([TP++]=5); vllm serve a --seed $TP",
    "quotes of a default": "vllm serve a --seed \"${A:-'x'}\"; vllm serve b --seed ${A:-'x'}; vllm serve c --seed \"${A:-\"y\"}\"; TP=${A:-\"1\"'2'}; vllm serve d --seed $TP",
    "no command": "TP=3; TP=6 $A; vllm serve a --seed $TP; B=; TP=7 $B; vllm serve b --seed $TP; TP=8 $B :; vllm serve c --seed $TP",
    "wait": "TP=3; : & wait -n -p TP; vllm serve a --seed ${TP:-8}",
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_certain_is_what_bash_has(name: str) -> None:
    assert read(SCRIPTS[name])
    hold(SCRIPTS[name])


PROGRAMS = {
    "xargs": "echo 5 | xargs vllm serve a --seed",
    "xargs puts in": "echo 5 | xargs -I{} vllm serve a --seed {}; echo 6 | xargs -I % vllm serve b --seed %",
    "find": "find /dev/null -exec vllm serve a --seed {} ';'",
    "timeout": "timeout 5 vllm serve a --seed 4; nohup vllm serve b --seed 5",
    "not the function": 'vllm() { command vllm "$@" --seed 2; }; vllm serve a',
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_commands_that_programs_start(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "vllm"
    stub.write_text('#!/bin/sh\necho "$*" >> "$0.out"\n')
    stub.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash", "-c", PROGRAMS[name]], env=environment, check=True, timeout=20, stdout=subprocess.DEVNULL)
    lines = (tmp_path / "vllm.out").read_text().splitlines()
    monkeypatch.setattr(f"{__name__}.printed", lambda _: lines)
    assert read(PROGRAMS[name])
    hold(PROGRAMS[name])


ENVIRONMENTS = {
    "unset": "export X=1; env -u X vllm serve a; env -i PATH=$PATH vllm serve b; env --unset=X vllm serve c; vllm serve d",
    "path of env": "/usr/bin/env X=7 vllm serve a; timeout 5 env X=8 vllm serve b; nohup env X=9 vllm serve c",
    "all": "set -a; X=1; set +a; vllm serve a; Y=1; X=2; vllm serve b; set -o allexport; Z=1; vllm serve c",
    "marked": "export X; X=3; vllm serve a; declare +x X; X=4; vllm serve b; export -n X; vllm serve c",
    "lent": "f() { vllm serve a; }; X=2 f; vllm serve b; export X=1; X=3 f; vllm serve c",
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_environment_is_that_of_bash(name: str, tmp_path: Path) -> None:
    stub = tmp_path / "vllm"
    stub.write_text('#!/bin/sh\necho "$2 ${X-none}" >> "${0%/*}/out"\n')
    stub.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash", "-c", ENVIRONMENTS[name]], env=environment, check=True, timeout=20)
    real = sorted(line.split() for line in (tmp_path / "out").read_text().splitlines())
    said = [
        [str(item.model), str(item.keywords["env:X"].value) if "env:X" in item.keywords else "none"]
        for item in read(ENVIRONMENTS[name])
    ]
    assert sorted(said) == real


COMPUTED = {
    "arithmetic": ["5", "6"], "let": ["5", "10"], "default": ["8", "8", "0"], "alternative": ["4", "1"], "local": ["5", "3"],
    "function": ["3", "5"], "arguments": ["4", "5"], "subshell": ["5", "3"], "redirection": ["3"], "append": ["12", "2"],
    "command substitution": ["3"], "temporary": ["5", "3"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_plain_is_computed(name: str) -> None:
    known = [str(value).partition(" ")[2] for _, value in claimed(SCRIPTS[name]) if not isinstance(value, Unknown)]
    assert known == COMPUTED[name]


NAME = st.sampled_from(NAMES)
NUMBER = st.integers(0, 12).map(str)
VALUE = st.one_of(
    NUMBER, NAME.map(lambda name: f"${name}"), NAME.map(lambda name: f'"${name}"'), st.just("''"),
    st.tuples(NAME, st.sampled_from([":-", "-", ":=", "=", ":+", "+"]), NUMBER).map(lambda x: f"${{{x[0]}{x[1]}{x[2]}}}"),
    st.tuples(NAME, st.sampled_from(["+", "-", "*", "=", "+=", "<"]), NUMBER).map(lambda x: f"$(({x[0]}{x[1]}{x[2]}))"),
    NAME.map(lambda name: f"$(({name}++))"), st.just("$#"), st.just("${1:-8}"), st.just("$1"),
    NAME.map(lambda name: f"${{#{name}}}"), NAME.map(lambda name: f"${{{name}[0]}}"), NAME.map(lambda name: f"${{!{name}}}"),
)  # fmt: skip
SIMPLE = st.one_of(
    st.tuples(NAME, VALUE).map("=".join),
    st.tuples(NAME, VALUE).map("+=".join),
    st.tuples(NAME, VALUE, VALUE).map(lambda x: f"{x[0]}=({x[1]} {x[2]})"),
    st.tuples(NAME, VALUE).map(lambda x: f"{x[0]}[1]={x[1]}"),
    st.tuples(st.sampled_from(["export", "declare", "local", "readonly", "declare -i", "typeset"]), NAME, VALUE).map(
        lambda x: f"{x[0]} {x[1]}={x[2]}"
    ),
    st.tuples(NAME, NAME).map(lambda x: f"declare -n {x[0]}={x[1]}"),
    st.tuples(NAME, st.sampled_from(["=", "+=", "*="]), NUMBER).map(lambda x: f"(({''.join(x)}))"),
    st.tuples(NAME, NUMBER).map(lambda x: f"let {x[0]}={x[1]}"),
    st.tuples(NAME, VALUE).map(lambda x: f"read {x[0]} <<< {x[1]}"),
    st.tuples(NAME, VALUE).map(lambda x: f"printf -v {x[0]} %s {x[1]}"),
    st.tuples(NAME, VALUE).map(lambda x: f"eval {x[0]}={x[1]}"),
    NAME.map(lambda name: f"unset {name}"),
    st.tuples(VALUE, VALUE).map(lambda x: f"set -- {x[0]} {x[1]}"),
    st.sampled_from(["shift", "f", "f 4", "g", "false", "true", ": ${A:=7}", "return", "break", "continue", "echo $((B=2))"]),
    st.tuples(NAME, VALUE).map(lambda x: f"echo 5 | {x[0]}={x[1]}"),
    VALUE.map(lambda value: f"vllm serve @ --seed {value}"),
    st.tuples(NAME, NUMBER, NAME).map(lambda x: f"{x[0]}={x[1]} vllm serve @ --seed ${x[2]}"),
)  # fmt: skip
BLOCK = st.recursive(
    st.lists(SIMPLE, min_size=1, max_size=3).map("; ".join),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["; ", " && ", " || ", "\n"]), inner).map("".join),
        st.tuples(inner, inner, inner).map(lambda x: f"if {x[0]}; then {x[1]}; else {x[2]}; fi"),
        st.tuples(inner, inner).map(lambda x: f"if {x[0]}; then {x[1]}; fi"),
        inner.map(lambda x: f"( {x} )"),
        inner.map(lambda x: f"{{ {x}; }}"),
        st.tuples(inner, inner).map(lambda x: f"{{ {x[0]}; }} | {{ {x[1]}; }}"),
        st.tuples(NAME, st.lists(VALUE, min_size=1, max_size=3), inner).map(
            lambda x: f"for {x[0]} in {' '.join(x[1])}; do {x[2]}; done"
        ),
        st.tuples(NAME, inner).map(lambda x: f"for (({x[0]}=1; {x[0]}<3; {x[0]}++)); do {x[1]}; ((N++ < 9)) || break; done"),
        st.tuples(NAME, inner).map(lambda x: f"while (({x[0]}++ < 2)); do {x[1]}; ((N++ < 9)) || break; done"),
        st.tuples(VALUE, inner, inner).map(lambda x: f"case {x[0]} in 1) {x[1]} ;; *) {x[2]} ;; esac"),
        st.tuples(st.sampled_from("fg"), inner).map(lambda x: f"{x[0]}() {{ ((N++ < 9)) || return; {x[1]}; }}"),
    ),
    max_leaves=7,
)  # fmt: skip


@st.composite
def scripts(draw: st.DrawFn) -> str:
    text = draw(st.lists(BLOCK, min_size=1, max_size=4).map("\n".join)) + "\nvllm serve @ --seed $TP\n"
    parts = text.split("@")
    return parts[0] + "".join(f"t{index}{part}" for index, part in enumerate(parts[1:]))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(scripts())
def test_no_certain_value_differs_from_bash(script: str) -> None:
    hold(script)


@pytest.mark.nightly
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(scripts())
def test_no_certain_value_differs_from_bash_at_length(script: str) -> None:
    hold(script)
