"""What of a whole checkout is the product: a test, a script and a second copy are not, unless the product uses them."""

import json
import shutil

import jsonschema
import pytest

from staticfire.harness.cli import main
from staticfire.harness.sync.source.audit import audit
from staticfire.harness.sync.source.product import split
from staticfire.harness.sync.source.text import render

STRANGE = """
from engine.worker import Worker


class Strange(Worker):
    def __init__(self, whole: "Whole"):
        self.whole = whole

    def loop(self):
        self.whole.cache.quiet = 1


from engine.config import Whole
"""
"""A worker of somebody's own that settles a field which the engine's worker leaves alone."""
ALONE = f"{STRANGE}\nif __name__ == '__main__':\n    Strange(Whole()).loop()\n"
NONE = ""

OUTSIDE = {
    "a package of tests": ("tests", {"tests/__init__.py": NONE, "tests/test_strange.py": STRANGE}),
    "a folder of tests": ("tests", {"checks/conftest.py": NONE, "checks/test_strange.py": STRANGE}),
    "tests with helpers": (
        "tests",
        {"tests/test_one.py": NONE, "tests/deep/test_two.py": NONE, "tests/deep/helper.py": STRANGE},
    ),
    "a test beside the package": ("tests", {"strange_test.py": STRANGE}),
    "tests in the package": ("tests", {"engine/trials/__init__.py": NONE, "engine/trials/test_strange.py": STRANGE}),
    "a test in the package": ("tests", {"engine/test_strange.py": STRANGE}),
    "examples": ("scripts", {"examples/strange.py": STRANGE, "examples/deep/other.py": NONE}),
    "examples that are a package": ("scripts", {"examples/__init__.py": NONE, "examples/strange.py": ALONE}),
    "examples with a package inside": (
        "scripts",
        {"demo/a.py": NONE, "demo/strange.py": STRANGE, "demo/lib/__init__.py": NONE},
    ),
    "a set-up script": ("scripts", {"setup.py": STRANGE}),
    "documentation": ("scripts", {"docs/conf.py": NONE, "docs/source/strange.py": STRANGE}),
    "a hidden folder": ("scripts", {".ci/strange.py": STRANGE}),
}
COPIED = {"build": "build/lib/engine", "vendored": "third_party/engine", "renamed": "engine_old", "before": "an_engine"}


@pytest.fixture
def checkout(edited, tmp_path):
    """The checkout around the engine, with more files."""

    def write(files):
        edited()
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def fields(root):
    return {finding.field for finding in audit(root, processes=1).findings}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_is_no_product_is_left_out_and_counted(checkout, case):
    kind, files = OUTSIDE[case]
    root = checkout(files)
    report = audit(root, processes=1)
    assert {finding.field for finding in report.findings} == {"cache.stride"}
    (left,) = report.coverage.left
    assert (left.kind, left.files) == (kind, len(files))
    assert f"no product: {len(files)} files of {kind} ({left.where[0]}" in render(report)


@pytest.mark.parametrize("place", COPIED.values(), ids=COPIED)
def test_a_second_copy_is_left_out(checkout, place):
    root = checkout({})
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(root / "engine", root / place)
    strange = root / place / "strange.py"
    strange.write_text(STRANGE)
    report = audit(root, processes=1)
    assert {finding.field for finding in report.findings} == {"cache.stride"}
    assert all("/engine/" in str(finding.write) and place not in str(finding.write) for finding in report.findings)
    (left,) = report.coverage.left
    assert (left.kind, left.where) == ("copies", (place,))


@pytest.mark.parametrize("case", sorted(OUTSIDE.keys() - {"a hidden folder"}))  # no name begins with a dot
@pytest.mark.parametrize("how", ["import", "text"])
def test_what_the_product_imports_or_runs_is_product(checkout, case, how):
    _, files = OUTSIDE[case]
    (name,) = [name for name, text in files.items() if text]
    dotted = name.removesuffix(".py").replace("/", ".")
    root = checkout(files)
    core = root / "engine" / "core.py"
    line = f"import {dotted} as strange" if how == "import" else f'HELPER = "{dotted}:Strange"'
    core.write_text(f"{line}\n{core.read_text()}")
    assert fields(root) == {"cache.stride", "cache.quiet"}


@pytest.mark.parametrize(
    "files",
    [
        {"plugin/__init__.py": NONE, "plugin/strange.py": STRANGE},
        {"src/other/__init__.py": NONE, "src/other/strange.py": STRANGE},
        {"engine/strange.py": ALONE},
    ],
    ids=["a package beside it", "a package in a folder", "a program in the package"],
)
def test_other_packages_and_programs_in_the_package_are_product(checkout, files):
    root = checkout(files)
    assert fields(root) == {"cache.stride", "cache.quiet"}
    assert audit(root, processes=1).coverage.left == ()


def test_a_tree_without_a_package_is_product_but_for_its_tests(checkout):
    root = checkout({"test_strange.py": STRANGE})
    (root / "engine" / "__init__.py").unlink()
    report = audit(root, processes=1)
    assert {finding.field for finding in report.findings} == {"cache.stride"}
    assert [(left.kind, left.files) for left in report.coverage.left] == [("tests", 1)]


def test_a_folder_of_tests_that_is_asked_for_itself_is_read(tmp_path):
    files = [tmp_path / "test_one.py", tmp_path / "conftest.py"]
    for path in files:
        path.write_text("")
    assert split(files, tmp_path).product == files


def test_two_small_packages_with_files_of_one_name_are_no_copies(tmp_path):
    files = [tmp_path / name for name in ("a/__init__.py", "a/util.py", "b/__init__.py", "b/util.py")]
    for path in files:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"x = '{path.parent.name}'\n")
    assert split(files, tmp_path).product == files


def test_the_report_for_machines_says_what_was_left_out(checkout, capsys, repo_root):
    root = checkout(OUTSIDE["a package of tests"][1])
    assert main(["sync", str(root), "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((repo_root / "docs/schemas/sync-source.json").read_text(encoding="utf-8")))
    assert document["coverage"]["no_product"] == [{"kind": "tests", "files": 2, "where": ["tests"]}]
