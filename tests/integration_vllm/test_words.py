"""What triage takes for a refusal by a rule is what vLLM's source raises, in each release that is said to."""

import ast
import re

import pytest
import vllm_envs

from vllm_messages import SAID

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(300)]


def pattern(node):
    """A string of source as a pattern: literal parts, and anything for a value."""
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=values):
            return "".join(pattern(value) or "" for value in values)
        case ast.FormattedValue():
            return ".*"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{pattern(left) or '.*'}{pattern(right) or '.*'}"
    return None


def raised(path):
    """Patterns of the strings in a module, and its bare assertions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assert) and node.msg is None:
            yield re.escape(f"assert {ast.unparse(node.test)}")
        elif (made := pattern(node)) is not None and len(made) > 12:
            yield made


@pytest.mark.parametrize(
    ("said", "version"),
    [pytest.param(said, version, id=f"{said.rule}-{version}") for said in SAID for version in said.versions],
)
def test_the_source_says_so(interpreters, said, version):
    place = vllm_envs.root() / f"vllm-{version}" / "vllm" / said.file
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert files, place
    assert any(re.fullmatch(one, said.text, re.DOTALL) for file in files for one in raised(file)), said.text
