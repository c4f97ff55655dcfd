"""Make, CI, Buildkite and the hooks: well-formed, and all calling the same targets."""

import datetime as dt
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))
CALL = r"\bmake ([a-z-]+)"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}


def make(*arguments, cwd=ROOT, **environment):
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def scratch(folder):
    """A checkout in which make would have everything still to do."""
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, folder / file)
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "install.py", folder / "tools" / "install.py")
    return folder


def test_help_is_the_default_and_lists_every_target():
    done = make()
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"^  make ([a-z-]+) ", done.stdout, re.MULTILINE)) == TARGETS
    assert {"run", "test", "lint", "types", "bench", "nightly", "docs", "wheel", "clean", "help"} <= TARGETS


def test_every_target_is_phony():
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.split()) == TARGETS


def test_every_target_that_needs_python_sets_up_first(tmp_path):
    for target in TARGETS - {"help", "clean", "distclean"}:
        plan = make(
            "--dry-run", target, cwd=scratch(tmp_path / target if (tmp_path / target).mkdir() is None else None)
        )
        assert plan.returncode == 0, plan.stderr
        assert "tools/install.py" in plan.stdout, target


def test_an_environment_that_is_set_up_is_left_alone_until_its_inputs_change(tmp_path):
    folder = scratch(tmp_path)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (stamp,) = re.findall(r"touch (\S+)", make("--dry-run", "setup", cwd=folder).stdout)
    (folder / stamp).touch()
    assert "install.py" not in make("--dry-run", "setup", cwd=folder).stdout
    os.utime(folder / "pyproject.toml")  # only the content counts
    assert "install.py" not in make("--dry-run", "setup", cwd=folder).stdout
    for file in ("pyproject.toml", "constraints.txt", "tools/install.py"):
        text = (folder / file).read_text()
        (folder / file).write_text(text + "\n")
        assert "install.py" in make("--dry-run", "setup", cwd=folder).stdout, file
        (folder / file).write_text(text)
    assert "install.py" not in make("--dry-run", "setup", cwd=folder).stdout


def test_a_python_that_is_too_old_is_refused_with_a_way_out(tmp_path):
    folder = scratch(tmp_path)
    old = folder / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make("setup", f"PYTHON={old}", cwd=folder)
    assert done.returncode != 0
    assert f"no Python 3.11 or newer among: {old}" in done.stderr
    assert "make PYTHON=/path/to/python3.12" in done.stderr
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("target", ["run", "test"])
def test_python_is_started_with_the_safe_path(tmp_path, target):
    folder = scratch(tmp_path)
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "safe=$PYTHONSAFEPATH cache=$STATICFIRE_CACHE args=$*"\n')
    python.chmod(0o755)
    done = make(target, "JOBS=3", "ARGS=--more", cwd=folder)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("safe=") and "install.py" not in line]
    assert line.startswith("safe=1 cache=/")
    assert line.endswith("--more")
    assert {"run": "-m staticfire run hybrid -j 3", "test": "-m pytest -n 3"}[target] in line


def test_the_scripts_that_make_calls_exist():
    scripts = re.findall(r"tools/\w+\.py", MAKEFILE)
    assert "tools/install.py" in scripts
    for script in scripts:
        assert (ROOT / script).is_file(), f"Makefile calls {script}"


def test_the_ci_script_parses_is_executable_and_calls_targets():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)
    called = re.findall(r"suite (?:\S+) \d+ make ([a-z-]+)", script.read_text())
    assert called[:4] == ["setup", "test", "lint", "types"]
    assert set(called) <= TARGETS
    assert {"wheel", "run"} <= set(called)


@pytest.fixture
def ci(tmp_path):
    """Run .ci/run in a folder whose `make` is a stand-in that fails for the given targets."""

    def run(*failing):
        (tmp_path / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
        tools = tmp_path / "bin"
        tools.mkdir()
        stand_in = tools / "make"
        stand_in.write_text(f'#!/bin/sh\necho "made $1"\ncase " {" ".join(failing)} " in *" $1 "*) exit 7;; esac\n')
        stand_in.chmod(0o755)
        return subprocess.run(
            ["bash", ".ci/run"],
            cwd=tmp_path,
            env={**ENVIRONMENT, "PATH": f"{tools}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_ci_runs_every_suite_after_a_failure_and_fails_at_the_end(ci):
    done = ci("test", "types", "wheel")
    assert done.returncode == 1
    assert re.findall(r"^made ([\w-]+)", done.stdout, re.MULTILINE) == [
        *("setup", "test", "lint", "types", "wheel", "run", "kernels", "test-vllm", "setup")
    ]
    table = done.stdout.split("outcome\n")[1]
    assert re.search(r"^test +\d+  FAILED: status 7$", table, re.MULTILINE)
    assert re.search(r"^lint +\d+  passed$", table, re.MULTILINE)
    assert re.search(r"^wheel-alone +-  left out: no wheel$", table, re.MULTILINE)
    assert re.search(r"^nightly +-  left out: too long for every change", table, re.MULTILINE)
    assert done.stdout.endswith("suites: 6 passed, 3 failed, 2 skipped\n")


def test_ci_stops_at_a_failed_set_up_and_says_what_it_left_out(ci):
    done = ci("setup")
    assert done.returncode == 1
    assert re.findall(r"^made ([\w-]+)", done.stdout, re.MULTILINE) == ["setup"]
    assert done.stdout.count("left out: set-up failed") == 9


def test_the_pipeline_is_a_valid_buildkite_pipeline():
    from check_jsonschema import main

    with pytest.raises(SystemExit) as ended:
        main(["--builtin-schema", "vendor.buildkite", str(ROOT / ".buildkite" / "pipeline.yaml")])
    assert ended.value.code == 0


def test_the_validation_of_the_pipeline_can_fail(tmp_path, capsys):
    from check_jsonschema import main

    bad = tmp_path / "pipeline.yaml"
    bad.write_text("steps:\n  - label: x\n    command: make test\n    timeout_in_minutes: soon\n")
    with pytest.raises(SystemExit) as ended:
        main(["--builtin-schema", "vendor.buildkite", str(bad)])
    assert ended.value.code == 1


def test_the_pipeline_is_the_one_that_is_made_of_the_settings(monkeypatch, capsys):
    from staticfire.harness.cli import main

    monkeypatch.chdir(ROOT)
    assert main(["pipeline", ".buildkite/staticfire.toml", "--bootstrap"]) == 0
    made = capsys.readouterr().out
    assert (ROOT / ".buildkite" / "pipeline.yaml").read_text() == made, "run `make docs`"


def test_what_the_pipeline_uploads_is_valid_thin_and_runs_every_suite(monkeypatch, capsys):
    import jsonschema

    from staticfire.harness.cli import main

    monkeypatch.chdir(ROOT)
    assert main(["pipeline", "--all"]) == 0
    document = yaml.safe_load(capsys.readouterr().out)
    schemas = files("check_jsonschema").joinpath("builtin_schemas", "vendor", "buildkite.json")
    jsonschema.Draft7Validator(json.loads(schemas.read_text())).validate(document)
    steps = [leaf for step in document["steps"] for leaf in step.get("steps", [step])]
    called = {target for step in steps for line in step.get("commands", ()) for target in re.findall(CALL, line)}
    assert called <= TARGETS
    assert {"setup", "test", "lint", "types", "wheel", "nightly"} <= called
    for step in steps:
        if "block" not in step:
            assert step["timeout_in_minutes"] > 0
            assert [rule.get("exit_status") for rule in step["retry"]["automatic"]] == [-1, 255, None]
            subprocess.run(["bash", "-n", "-c", "\n".join(step["commands"]).replace("$$", "$")], check=True)


@pytest.mark.nightly
def test_checks_of_the_pipeline_are_green_on_this_machine(monkeypatch, capfd):
    from staticfire.harness.cli import main

    monkeypatch.chdir(ROOT)
    only = [word for key in ("lint", "cells", "sync", "kernels") for word in ("--only", key)]
    assert main(["pipeline", "--local", *only]) == 0, capfd.readouterr().out
    assert capfd.readouterr().out.rstrip().endswith("the build is green")


def test_every_path_that_the_settings_name_is_there():
    settings = tomllib.loads((ROOT / ".buildkite" / "staticfire.toml").read_text())
    works = [*settings["check"], *settings["matrix"], *settings["tests"]]
    named = {path for work in works for path in (*work.get("needs", ()), *work.get("exclude", ()))}
    for path in {*named, *settings["pipeline"]["run_all"]}:
        assert (ROOT / path).exists(), path


def test_every_file_of_tests_is_run_by_exactly_one_step():
    from staticfire.harness.pipeline.jobs import plan
    from staticfire.harness.pipeline.sources import settings

    jobs = [
        job for job in plan(settings([], ROOT, dt.date.min), ROOT) if job.phase == "tests" and not job.work.optional
    ]
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        runs = [job.key for job in jobs if any(name == one or name.startswith(f"{one}/") for one in job.ids)]
        assert len(runs) == (not name.startswith("tests/integration_vllm/")), (name, runs)


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ("docs/check.md", {"test-repo"}),
        ("kernels/layout.py", {"kernels", "hybrid", "test-kernels", "test-engine", "test-harness", "test-repo"}),
        ("tests/kernels/test_layout.py", {"test-kernels", "test-repo"}),
        ("harness/report/text.py", {"hybrid", "test-harness", "test-integration", "test-repo"}),
        ("pyproject.toml", {"hybrid", "kernels", "test-kernels", "test-engine", "test-harness", "test-repo"}),
        ("a-new-folder/file.py", {"hybrid", "kernels", "test-kernels", "test-engine", "test-harness", "test-repo"}),
    ],
)
def test_a_change_selects_what_it_may_break(changed, selected):
    from staticfire.harness.pipeline.jobs import plan
    from staticfire.harness.pipeline.select import select
    from staticfire.harness.pipeline.sources import settings

    made = settings([], ROOT, dt.date.min)
    jobs = plan(made, ROOT)
    choices = select(jobs, [changed], made)
    works = {job.work.key for job in jobs if choices[job.key].selected}
    assert selected <= works
    if changed.startswith(("docs/", "tests/")):
        assert works - {"lint", "types", "wheel", "nightly"} == selected


def test_hooks_call_make_targets():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    for hook in hooks:
        assert hook["language"] == "system"
        assert hook["entry"].removeprefix("make ") in TARGETS
    assert [hook["id"] for hook in hooks] == ["format", "lint", "types"]


@pytest.mark.slow
def test_pre_commit_accepts_its_configuration():
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", str(ROOT / ".pre-commit-config.yaml")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_ignored_lint_rule_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text()
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    rules = [*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)]
    for rule in rules:
        assert re.search(rf'"{rule}",\s+# \S+', text), f"the ignore of {rule} has no reason beside it"


def test_pytest_is_strict():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert options["filterwarnings"][0] == "error"
    assert options["xfail_strict"] is True
    assert {"--strict-markers", "--strict-config", "--import-mode=importlib"} <= set(options["addopts"])
