import datetime as dt

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from staticfire.harness.plugin.hypothesis_profiles import DATABASE, SEED, ProfilePlugin, seed_of

PROPERTY = """
    from hypothesis import given, settings, strategies as st

    SEEN = []

    @given(st.integers())
    def test_property(number):
        SEEN.append(number)

    def test_what_was_seen():
        now = settings()
        shown = [now.deadline, now.derandomize, now.max_examples, now.database is not None, hash(tuple(SEEN))]
        with open("seen", "a") as file:
            print(*shown, file=file)
"""


def seen(suite):
    return (suite.folder / "seen").read_text().splitlines()


def test_profiles_are_what_they_say(suite):
    suite.write("test_it.py", PROPERTY)
    for profile in ("dev", "ci", "ci", "nightly", "nightly"):
        run = suite.run("--sf-hypothesis", profile, STATICFIRE_HYPOTHESIS_SEED="7")
        assert run.code == 0, run.text
        assert f"Hypothesis profile {profile}" in run.text
        assert ("--hypothesis-seed=7" in run.text) == (profile == "nightly")
    lines = [line.rsplit(" ", 1) for line in seen(suite)]
    assert [settings for settings, _ in lines] == [
        "None False 100 True",
        "None True 100 False",
        "None True 100 False",
        "None False 2000 True",
        "None False 2000 True",
    ]
    examples = [found for _, found in lines]
    assert examples[1] == examples[2], "derandomised"
    assert examples[3] == examples[4], "one seed, one night"
    assert examples[0] != examples[1]


def test_auto_follows_the_variables(suite):
    suite.write("test_it.py", "def test_it(): ...\n")
    (suite.folder / "pytest.ini").write_text("[pytest]\nsf_hypothesis = auto\n")
    assert "profile dev" in suite.run().text
    assert "profile ci" in suite.run(CI="true").text
    assert "profile nightly" in suite.run(CI="true", HYPOTHESIS_PROFILE="nightly").text
    wrong = suite.run(HYPOTHESIS_PROFILE="weekly")
    assert wrong.code == pytest.ExitCode.USAGE_ERROR
    assert "HYPOTHESIS_PROFILE=weekly: no such profile" in wrong.text


def test_the_seed_is_told_where_there_is_no_header(suite):
    suite.write("test_it.py", "def test_it(): ...\n")
    for options in (["-q"], ["--no-header"], ["-q", "-n", "1"], []):
        text = suite.run("--sf-hypothesis=nightly", *options, STATICFIRE_HYPOTHESIS_SEED="7").text
        assert text.count("--hypothesis-seed=7") == 1, options
    assert "Hypothesis profile" not in suite.run("--sf-hypothesis=dev", "-q").text


def test_our_own_suite_runs_under_them(pytestconfig):
    (ours,) = (one for one in pytestconfig.pluginmanager.get_plugins() if isinstance(one, ProfilePlugin))
    assert settings().max_examples == settings.get_profile(ours.profile).max_examples
    database = settings.get_profile("nightly").database
    assert isinstance(database, DirectoryBasedExampleDatabase)
    assert database.path == pytestconfig.rootpath / DATABASE


def test_workers_have_the_seed_of_the_controller(suite):
    # both tests in one worker: the second shows what the first has seen
    suite.write(
        "test_it.py",
        PROPERTY.replace(
            "    @given", "    import pytest\n    pytestmark = pytest.mark.xdist_group('a')\n\n    @given"
        ),
    )
    for _ in range(2):
        run = suite.run("--sf-hypothesis=nightly", "-n", "2", "--dist=loadgroup", STATICFIRE_HYPOTHESIS_SEED="11")
        assert "seed 11" in run.text
    one, other = seen(suite)
    assert one == other


def test_the_seed_rotates_with_the_day(monkeypatch):
    monkeypatch.delenv(SEED, raising=False)
    assert seed_of(dt.date(2026, 11, 30)) == 20261130
    assert seed_of(dt.date(2026, 12, 1)) != seed_of(dt.date(2026, 11, 30))
    monkeypatch.setenv(SEED, "x")
    with pytest.raises(pytest.UsageError, match="whole number"):
        seed_of(dt.date(2026, 11, 30))
