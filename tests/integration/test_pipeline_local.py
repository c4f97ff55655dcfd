"""A whole build on one machine: shards of a matrix and of a suite, their reports, annotations, triage, and a retry."""

import html
import json
import shlex
import sys

import pytest
import yaml

from run_cli import MATRIX, Toy
from staticfire.harness import junit
from staticfire.harness.cli import main

SETTINGS = """
[pipeline]
program = "{python} -m staticfire"

[[check]]
key = "cells"
command = "{python} -m staticfire matrix toy.toml"

[[matrix]]
key = "toy"
file = "toy.toml"
shards = 3
options = "--job fake_jobs:by_seed --format junit"

[[tests]]
key = "unit"
path = "suite"
shards = 2
command = "{python} -m pytest -q -p no:cacheprovider -p no:buildkite-test-collector {{files}} --junitxml={{junit}}"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    toy = Toy(tmp_path)
    (tmp_path / "toy.toml").write_text(MATRIX.format(seeds=list(range(7))))
    (tmp_path / "p.toml").write_text(SETTINGS.format(python=sys.executable))
    (tmp_path / "suite").mkdir()
    for number in range(3):
        (tmp_path / "suite" / f"test_{number}.py").write_text("def test_it(): assert 1 + 1 == 2\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)

    def build(**actions):
        for name, value in toy.environment(**actions).items():
            monkeypatch.setenv(name, value)
        return main(["pipeline", "p.toml", "--local"])

    return tmp_path, build


def reported(folder):
    cases = [case for file in junit.files([folder]) for case in junit.read(file)]
    assert len({(case.classname, case.name) for case in cases}) == len(cases), "a case was run twice"
    return {case.name: case.outcome for case in cases}


@pytest.mark.slow
def test_the_shards_of_a_green_build_are_the_whole_and_nothing_twice(project, capfd):
    folder, build = project
    stale = folder / "staticfire-report" / "toy" / "1" / "junit.xml"
    stale.parent.mkdir(parents=True)
    stale.write_text('<testsuite><testcase name="of an earlier build"><failure/></testcase></testsuite>')
    assert build() == 0
    out = capfd.readouterr().out
    assert reported(folder / "staticfire-report" / "toy") == {f"llama-tiny-seed-{n}": "passed" for n in range(7)}
    assert len(list(junit.files([folder / "staticfire-report" / "toy"]))) == 3
    assert "--- annotation toy (success)\n**toy: no failure of 7 in 3 reports**" in out
    assert "--- annotation unit (success)\n**unit: no failure of 3 in 2 reports**" in out
    assert out.rstrip().endswith("the build is green")


@pytest.mark.slow
def test_a_red_build_is_explained_and_what_failed_is_planned_again(project, capfd):
    folder, build = project
    assert build(seed3="fail", seed5="throw:value") == 1
    out = html.unescape(capfd.readouterr().out)
    assert "--- annotation toy (error)\n**toy: 2 failures of 7: 2 root causes**" in out
    assert "staticfire run toy.toml --cell llama-tiny-seed-3" in out
    assert out.rstrip().endswith("the build is red")

    main(["triage", "staticfire-report/toy", "--retry", "all", "--retry-plan"])
    (command,) = capfd.readouterr().out.splitlines()
    words = shlex.split(command)
    assert words[:3] == ["staticfire", "run", "toy.toml"]
    assert sorted(words[4::2]) == ["llama-tiny-seed-3", "llama-tiny-seed-5"]

    assert main(["pipeline", "p.toml", "--output", "pipeline.yaml"]) == 0
    capfd.readouterr()
    keys = ["triage", "staticfire-report/toy", "--retry", "all", "--format", "step-keys", "--pipeline", "pipeline.yaml"]
    main(keys)
    found = json.loads(capfd.readouterr().out)
    flat = [
        leaf
        for step in yaml.safe_load((folder / "pipeline.yaml").read_text())["steps"]
        for leaf in step.get("steps", [step])
    ]
    failed = [
        leaf["key"]
        for leaf in flat
        if any(f"--cell llama-tiny-seed-{seed}" in "\n".join(leaf["commands"]) for seed in (3, 5))
    ]
    assert found == ["cells", *failed]


ONE_FILE = """
[pipeline]
program = "{python} -m staticfire"

[[tests]]
key = "unit"
path = "test_one.py"
shards = 3
command = "{python} -m pytest -p no:buildkite-test-collector {{files}} --sf-shard {{shard}} --junitxml={{junit}}"
"""


@pytest.mark.slow
def test_one_file_is_cut_by_test_with_the_plugin(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "p.toml").write_text(ONE_FILE.format(python=sys.executable))
    suite = "import pytest\n@pytest.mark.parametrize('n', range(7))\ndef test_it(n): assert n >= 0\n"
    (tmp_path / "test_one.py").write_text(suite)
    assert main(["pipeline", "p.toml", "--local"]) == 0, capfd.readouterr().out
    assert set(reported(tmp_path / "staticfire-report" / "unit")) == {f"test_it[{n}]" for n in range(7)}
