"""What is in the repository: no registry hosts, no paths of one machine, no test file without a test."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Put together from parts, so that this file does not contain what it looks for.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("registry", "npmjs", "org"),
        ("deb", "debian", "org"),
        ("conda", "anaconda", "org"),
        ("pypi", "nvidia", "com"),
        ("proxy", "golang", "org"),
    )
]
MACHINE_PATHS = [rf"(?<![\w.])/{folder}/" for folder in ("work", "root", "home", "Users", "opt/pypi", "opt/wheels")]
BINARY = {".png", ".ico", ".safetensors"}


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink() and path.suffix not in BINARY]


def findings(pattern, texts):
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search(pattern, line)
    ]


@pytest.fixture(scope="module")
def texts():
    return [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in tracked()]


def test_no_registry_host_is_named(texts):
    assert findings("|".join(map(re.escape, HOSTS)), texts) == []


def test_no_path_of_one_machine_is_named(texts):
    assert findings("|".join(MACHINE_PATHS), texts) == []


def test_the_search_finds_what_it_should():
    planted = [("a.py", f"url = 'https://{HOSTS[0]}/simple'\n"), ("b.md", "see " + "/" + "work/main" + "\n")]
    assert findings("|".join(map(re.escape, HOSTS)), planted) == [f"a.py:1: url = 'https://{HOSTS[0]}/simple'"]
    assert len(findings("|".join(MACHINE_PATHS), planted)) == 1


def test_text_files_end_with_a_newline_and_have_no_trailing_blanks(texts):
    assert [path for path, text in texts if text and not text.endswith(("\n", "}"))] == []  # } ends a JSON document
    assert findings(r"[ \t]+$", [(path, text) for path, text in texts if not path.startswith("matrices/text/")]) == []


def test_no_conflict_markers(texts):
    assert findings(r"^(<{7}|>{7}) ", texts) == []


TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def defines_a_test(tree):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and re.match("(?i)test", node.name):
            return True
        if isinstance(node, ast.Assign) and any(re.match("(?i)test", ast.unparse(target)) for target in node.targets):
            return True  # TestMachine = Machine.TestCase
    return False


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_test_file_has_a_test(path):
    assert defines_a_test(ast.parse(path.read_text(encoding="utf-8")))


def test_tests_stand_in_files_that_pytest_collects():
    others = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
    lost = [
        path.relative_to(ROOT).as_posix()
        for path in others
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert lost == []


@pytest.mark.slow
@pytest.mark.engine
def test_pytest_collects_something_from_each_test_file():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=--import-mode=importlib", "tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    collected = {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {path.relative_to(ROOT).as_posix() for path in TEST_FILES} - collected == set()


def test_no_folder_of_tests_is_a_package():
    """Mirrored files share base names, which only importlib mode without packages allows."""
    assert [path for path in TEST_FILES if (path.parent / "__init__.py").exists()] == []
