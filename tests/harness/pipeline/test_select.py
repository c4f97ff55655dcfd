"""Selection by change: erring on the side of running, closed under dependencies, with a reason for each."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline.jobs import Job
from staticfire.harness.pipeline.select import matches, only, select, unmet
from staticfire.harness.pipeline.settings import Check, Settings, load, parse
from toy_pipeline import TODAY


def job(key, *needs, after=()):
    work = Check(key=key, command="make", depends_on=after)
    return Job(key, key, "check", work, ("make",), needs=needs)


JOBS = (job("lint", "src/"), job("engine", "engine/", "!engine/docs/", after=("build",)), job("build", "build/"))
SETTINGS = Settings(run_all=("pyproject.toml",), ignore=("docs/", "*.md"))


def chosen(changed, jobs=JOBS):
    return {key: choice.selected for key, choice in select(jobs, changed, SETTINGS).items()}


def test_without_knowledge_of_what_changed_everything_runs():
    assert set(chosen(None).values()) == {True}
    assert select(JOBS, None, SETTINGS, "git is not there")["lint"].because == "git is not there"


def test_a_change_selects_what_depends_on_it_and_what_that_waits_for():
    assert chosen(["src/a.py"]) == {"lint": True, "engine": False, "build": False}
    assert chosen(["engine/a.py"]) == {"lint": False, "engine": True, "build": True}
    found = select(JOBS, ["engine/a.py"], SETTINGS)
    assert found["engine"].because == "engine/a.py changed, and it depends on engine/"
    assert found["build"].because == "engine depends on it"
    assert found["lint"].because == "nothing changed in src/"


@pytest.mark.parametrize("path", ["pyproject.toml", "setup.cfg", "engine/docs/a.rst"])
def test_what_is_listed_for_all_or_known_to_nobody_runs_everything(path):
    assert set(chosen([path]).values()) == {True}


def test_what_is_ignored_selects_nothing():
    assert set(chosen(["docs/a.rst", "README.md"]).values()) == {False}


def test_a_step_that_says_nothing_always_runs():
    assert chosen([], (job("always"), job("other", "src/"))) == {"always": True, "other": False}


def test_dependencies_may_come_from_elsewhere():
    class Graph:
        def of(self, job):
            return ("a/",) if job.key == "lint" else ("b/",)

    found = select(JOBS, ["a/x"], SETTINGS, dependencies=Graph())
    assert [key for key, choice in found.items() if choice.selected] == ["lint"]


PATHS = st.lists(st.sampled_from(["src/a", "engine/b", "engine/docs/c", "build/d", "docs/e", "f"]), max_size=4)


@given(PATHS, PATHS)
def test_a_larger_change_never_runs_less(some, more):
    fewer, larger = chosen(some), chosen(some + more)
    assert all(larger[key] for key, selected in fewer.items() if selected)


@given(PATHS)
def test_no_change_that_a_step_depends_on_leaves_it_out(paths):
    made = chosen(paths)
    for one in JOBS:
        if any(matches(path, one.needs) for path in paths):
            assert made[one.key]


def test_git_tells_what_changed_moved_and_is_not_committed(tmp_path, git):
    from staticfire.harness.pipeline.changes import changes

    (tmp_path / "old.py").write_text("a = 1\n" * 20)
    (tmp_path / "same.py").write_text("")
    git("add", "."), git("commit", "-qm", "one"), git("branch", "base")
    git("mv", "old.py", "new ü.py"), git("commit", "-qm", "two")
    (tmp_path / "same.py").write_text("b = 2\n")
    (tmp_path / "fresh.py").write_text("")
    assert changes(tmp_path, "base").paths == ("fresh.py", "new ü.py", "old.py", "same.py")


def test_a_project_in_a_folder_of_a_checkout_is_told_from_its_own_root(tmp_path, git):
    from staticfire.harness.pipeline.changes import changes

    (tmp_path / "project" / "src").mkdir(parents=True)
    for name in ("top.py", "project/src/a.py"):
        (tmp_path / name).write_text("a = 1\n")
    git("add", "."), git("commit", "-qm", "one"), git("branch", "base")
    for name in ("top.py", "project/src/a.py", "fresh.py", "project/fresh.py"):
        (tmp_path / name).write_text("b = 2\n")
    assert changes(tmp_path / "project", "base").paths == ("../fresh.py", "../top.py", "fresh.py", "src/a.py")


@pytest.mark.parametrize("base", [None, "", "nowhere", "--output=x"])
def test_a_base_that_git_does_not_know_is_said_and_runs_everything(tmp_path, git, base):
    from staticfire.harness.pipeline.changes import changes

    git("commit", "-qm", "one", "--allow-empty")
    found = changes(tmp_path, base)
    assert found.paths is None
    assert found.why
    assert not Path(tmp_path / "x").exists()


def test_the_base_of_a_buildkite_build():
    from staticfire.harness.pipeline.changes import base

    assert base({"BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main"}) == "origin/main"
    assert base({"BUILDKITE_GIT_DIFF_BASE": "abc", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main"}) == "abc"
    assert base({"BUILDKITE_PULL_REQUEST_BASE_BRANCH": ""}) is None


def test_a_step_that_is_named_comes_with_all_that_it_waits_for():
    found = only(JOBS, ["engine"])
    assert {key: choice.because for key, choice in found.items()} == {
        "lint": "it is not asked for",
        "engine": "it is asked for",
        "build": "engine waits for it",
    }
    assert [choice.selected for choice in found.values()] == [False, True, True]


def test_unknown_steps_are_all_named_and_nothing_is_chosen():
    with pytest.raises(InputError, match=r"no step 'lnt'. Did you mean 'lint'") as refused:
        only(JOBS, ["lnt", "engine", "buld"])
    assert len(str(refused.value).splitlines()) == 2


def test_a_dependency_that_nothing_meets_is_told_with_the_nearest_name(tmp_path):
    for folder in ("src/core", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src" / "main.py").touch()
    needs = "['src/', 'src/ma', '!src/core/', 'tests', 'scr/', 'src/cor/', 'src/core/x', 'away/from/here']"
    text = f"[pipeline]\nrun_all = ['test/']\n[[check]]\nkey = 'a'\ncommand = 'x'\nneeds = {needs}\n"
    told = unmet(parse(text, "p.toml", TODAY), tmp_path)
    assert told == [
        "step 'a' needs 'scr/', and nothing here begins like that. Did you mean 'src'?",
        "step 'a' needs 'src/cor/', and nothing here begins like that. Did you mean 'src/core'?",
        "step 'a' needs 'src/core/x', and nothing here begins like that.",
        "step 'a' needs 'away/from/here', and nothing here begins like that.",
        "run_all names 'test/', and nothing here begins like that. Did you mean 'tests'?",
    ]


def test_every_dependency_of_our_own_pipeline_is_there(repo_root):
    assert unmet(load(repo_root / ".buildkite" / "staticfire.toml", TODAY), repo_root) == []
