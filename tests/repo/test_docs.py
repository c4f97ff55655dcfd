"""What the documents say is there is there: commands, links, paths, versions, verbs."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import staticfire
from staticfire.harness.cli import VERBS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for place in ("*.md", "docs/**/*.md", "tests/**/*.md", "matrices/**/*.md", "harness/**/*.md")
    for path in ROOT.glob(place)
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))


def name(path):
    return path.relative_to(ROOT).as_posix()


def prose(path):
    """The text without fenced blocks, where brackets are output and not links."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_the_documents_are_there():
    assert {
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/README.md",
        "docs/benchmarks.md",
    } <= {name(path) for path in DOCUMENTS}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_inside_the_repository_lead_somewhere(path):
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        destination = (path.parent / file).resolve() if file else path
        assert destination.exists(), f"{name(path)} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", destination.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [slug(heading) for heading in headings], f"{name(path)} links to {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_make_commands_in_documents_are_targets(path):
    text = path.read_text(encoding="utf-8")
    commands = re.findall(r"(?:`|^\$ )make ([a-z-]+)", text, re.MULTILINE)
    assert set(commands) <= TARGETS, name(path)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_verbs_in_documents_exist(path):
    text = path.read_text(encoding="utf-8")
    verbs = re.findall(r"(?:`|\$ (?:\S*/)?)staticfire ([a-z]+)\b", text)
    assert set(verbs) <= set(VERBS), name(path)


def test_the_readme_shows_every_verb_and_every_exit_code():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f"`staticfire {verb}" in text
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == ["0", "1", "2", "3", "130"]
    assert "$ make run" in text
    assert "$ make test" in text
    assert "TORCH_INDEX" in text


LIGHT = ("explain", "matrix", "rule", "rules")
SHOWN = [
    (path, command, output)
    for path in DOCUMENTS
    for command, output in re.findall(
        r"^\$ \S*staticfire (.+)\n((?:(?!```|\$ ).*\n)+)```", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    if command.split()[0] in LIGHT
]


def covers(shown, printed):
    """Tell whether `shown`, in which … stands for anything, is what was printed, however the lines were broken."""
    first, *others = [" ".join(part.split()) for part in shown.split("…")]
    left = " ".join(printed.split())
    if not left.startswith(first):
        return False
    left = left[len(first) :]
    for part in others:
        _, found, left = left.partition(part) if part else ("", "…", "")
        if not found:
            return False
    return not left.strip()


def test_elided_output_is_told_from_wrong_output():
    printed = "a  1\nb\nc\nd\n"
    assert covers("a 1\nb\nc\nd\n", printed)
    assert covers("a 1\n…\nd\n", printed)
    assert covers("a 1\n…\n", printed)
    assert covers("…\nc\n…\n", printed)
    assert not covers("a 1\nb\n", printed)
    assert not covers("b\n…\nd\n", printed)
    assert not covers("a 1\n…\nx\n…\nd\n", printed)
    assert not covers("a 2\n…\n", printed)


def test_there_is_output_to_check():
    assert [command.split()[0] for path, command, _ in SHOWN if path.name == "README.md"] == ["explain", "explain"]


@pytest.mark.parametrize(("path", "command", "output"), SHOWN, ids=[command for _, command, _ in SHOWN])
def test_the_output_shown_is_what_the_command_prints(path, command, output):
    done = subprocess.run(
        [sys.executable, "-m", "staticfire", *shlex.split(command)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert covers(output, done.stdout), f"{name(path)} shows other output than:\n{done.stdout}"


def test_the_summary_of_a_run_in_the_readme_has_the_counts_of_the_matrix():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^(\d+) cells: (\d+) passed, (\d+) refused as expected in ", text, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "staticfire", "matrix", "hybrid", "--format", "json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    verdicts = [cell["verdict"] for cell in json.loads(done.stdout)["cells"]]
    assert shown == (str(len(verdicts)), str(verdicts.count("valid")), str(verdicts.count("refused")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_no_spot_waits_for_its_output(path):
    assert re.findall(r"<!-- \w+:.*", path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "tests/README.md"])
def test_paths_in_the_maps_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    generated = {"staticfire-report/", ".cache/"}
    paths = set(re.findall(r"`([\w./-]+/[\w./-]*)`", text)) - generated
    assert len(paths) >= 2
    for path in paths:
        assert path == "X/" or (ROOT / path).exists(), f"{document} names {path}"


def test_the_architecture_names_every_folder():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [
        folder
        for top in ("engine", "harness")
        for folder in sorted((ROOT / top).iterdir())
        if (folder / "__init__.py").exists()
    ]
    assert len(packages) > 8
    for folder in packages:
        assert f"`{name(folder)}/`" in text, f"ARCHITECTURE.md says nothing of {name(folder)}/"


def test_the_changelog_has_the_current_version_first():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] in {"Unreleased", staticfire.__version__}
    assert staticfire.__version__ in headings


def test_markers_are_documented():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    table = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    for marker in options["markers"]:
        assert f"| `{marker.split(':')[0]}` |" in table


def test_generated_documents_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun: make docs"


def test_the_index_of_documents_lists_each_of_them():
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs").iterdir():
        if path.name != "README.md":
            assert f"]({path.name}" in text, f"docs/README.md does not link {path.name}"
