"""A comparison whose result nobody looks at is a test that cannot fail."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("kernels", "engine", "harness", "matrices", "tests", "tools")
COMPARISONS = frozenset({"allclose", "isclose", "equal", "array_equal", "bits_equal"})


def dropped(source: str) -> list[tuple[int, str]]:
    """Lines of expression statements that compare and drop the answer."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        function = node.value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in COMPARISONS:
            found.append((node.lineno, name))
    return sorted(found)


def test_no_comparison_is_dropped():
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(paths) > 20
    faults = [
        f"{path.relative_to(ROOT)}:{line}: the result of {name}() is dropped"
        for path in paths
        for line, name in dropped(path.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("torch.allclose(a, b)", [1]),
        ("def test():\n    x = 1\n    np.allclose(a, b, rtol=1)", [3]),
        ("allclose(a, b)\ntorch.equal(a, b)", [1, 2]),
        ("assert torch.allclose(a, b)", []),
        ("same = a.equal(b)", []),
        ("if allclose(a, b):\n    pass", []),
        ("torch.testing.assert_close(a, b)", []),
    ],
)
def test_the_check_sees_what_it_should(source, lines):
    assert [line for line, _ in dropped(source)] == lines
