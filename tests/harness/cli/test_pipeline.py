"""`staticfire pipeline`: what it prints and writes, its exit codes, and that a planted fault makes a build red."""

import json
import re
import subprocess
import sys

import pytest
import yaml

from staticfire.harness.cli import main
from toy_pipeline import SETTINGS, make


@pytest.fixture
def project(tmp_path, monkeypatch):
    make(tmp_path)
    (tmp_path / "p.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    for name in ("BUILDKITE_GIT_DIFF_BASE", "BUILDKITE_PULL_REQUEST_BASE_BRANCH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_settings_file_becomes_a_pipeline_and_the_reason_is_told(project, capsys):
    assert main(["pipeline", "p.toml"]) == 0
    out, err = capsys.readouterr()
    keys = [step["key"] for step in yaml.safe_load(out)["steps"]]
    assert keys == ["checks", "hybrid-all", "unit-all", "gpu-all", "summary"]
    assert "8 of 8 jobs selected (there is no base to compare with (--base))" in err


def test_a_change_that_is_given_selects(project, capsys):
    assert main(["pipeline", "p.toml", "--changed", "engine/x.py"]) == 0
    out, err = capsys.readouterr()
    assert out.count("skip:") == 3
    assert "5 of 8 jobs selected" in err


def test_one_shard_alone_runs_after_the_checks(project, capsys):
    assert main(["pipeline", "p.toml", "--only", "hybrid-2"]) == 0
    steps = yaml.safe_load(capsys.readouterr().out)["steps"]
    flat = [leaf for step in steps for leaf in step.get("steps", [step])]
    assert [leaf["key"] for leaf in flat if "skip" not in leaf] == ["lint", "configurations", "hybrid-2", "summary"]
    assert "--expect 1 --final" in "\n".join(flat[-1]["commands"])


def test_a_matrix_and_a_folder_need_no_settings(project, capsys):
    assert main(["pipeline", "hybrid", "tests", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [step["key"] for step in document["steps"]] == ["checks", "hybrid", "tests", "summary"]


def test_explain_and_diff(project, capsys):
    assert main(["pipeline", "explain", "lint", "p.toml"]) == 0
    assert "selected: there is no base" in capsys.readouterr().out
    assert main(["pipeline", "p.toml", "--output", "old.yaml"]) == 0
    capsys.readouterr()
    assert main(["pipeline", "diff", "old.yaml", "p.toml"]) == 0
    assert capsys.readouterr().out == "no step differs\n"
    assert main(["pipeline", "diff", "old.yaml", "p.toml", "--changed", "engine/x"]) == 1
    assert "~ lint:\n    skip: nothing -> nothing changed in src/" in capsys.readouterr().out


def test_timings_decide_the_shards(project, capsys):
    cases = {"tests.test_a": 100, "tests.deep.test_b": 1, "tests.deep.c_test": 1}
    rows = "".join(f'<testcase classname="{name}" name="test_it" time="{time}"/>' for name, time in cases.items())
    (project / "old.xml").write_text(f"<testsuite>{rows}</testsuite>")
    assert main(["pipeline", "explain", "unit", "p.toml", "--timings", "old.xml"]) == 0
    told = re.findall(r"expected: (\S+) for (\d) item", capsys.readouterr().out)
    assert sorted(told) == [("1m40s", "1"), ("3.0s", "3")]


def test_more_jobs_than_an_upload_takes_are_written_in_parts(project, capsys):
    text = SETTINGS.replace('path = "tests"\ndevice', 'path = "many"\nshards = 600\ndevice')
    (project / "p.toml").write_text(text)
    (project / "many").mkdir()
    for number in range(600):
        (project / "many" / f"test_{number}.py").touch()
    assert main(["pipeline", "p.toml"]) == 2
    assert "takes 2 uploads: write it with --output-dir" in capsys.readouterr().err
    (project / "out").mkdir()
    (project / "out" / "part-009.yaml").write_text("of an earlier, longer pipeline")
    assert main(["pipeline", "p.toml", "--output-dir", "out"]) == 0
    assert sorted(path.name for path in (project / "out").iterdir()) == ["part-001.yaml", "part-002.yaml"]


def test_the_bootstrap_uploads_the_last_part_first_and_its_script_works(project, capsys):
    assert main(["pipeline", "p.toml", "--bootstrap"]) == 0
    out = capsys.readouterr().out
    (step,) = yaml.safe_load(out)["steps"]
    assert out.startswith("# Made by `staticfire pipeline p.toml --bootstrap`")
    upload = step["commands"][-1].replace("$$", "$")
    (project / "staticfire-report" / "pipeline").mkdir(parents=True)
    for number in (1, 2):
        (project / "staticfire-report" / "pipeline" / f"part-00{number}.yaml").touch()
    script = f'buildkite-agent() {{ echo "$@"; }}\n{upload}'
    done = subprocess.run(["bash", "-e", "-c", script], capture_output=True, text=True, check=True)
    folder = "pipeline upload staticfire-report/pipeline"
    assert done.stdout.splitlines() == [f"{folder}/part-002.yaml", f"{folder}/part-001.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.toml"], "No matrix 'nowhere.toml'"),
        (["hybrd"], "Did you mean 'hybrid'"),
        (["p.toml", "--all", "--base", "main"], "--base and --all exclude each other"),
        (["p.toml", "--local", "--bootstrap"], "exclude each other"),
        (["p.toml", "--only", "lnt"], "no step 'lnt'. Did you mean 'lint'"),
        (["explain"], "explain what?"),
        (["diff"], "compare with what?"),
        (["explain", "lnt", "p.toml"], "Did you mean 'lint'"),
        (["diff", "nowhere.yaml", "p.toml"], "nowhere.yaml"),
        (["p.toml", "--timings", "nowhere"], "nowhere: no such file"),
        (["p.toml", "--format", "json", "--output-dir", "x"], "--output-dir is for --format yaml"),
        (["p.toml", "--format", "vllm-test-area"], "single quotes become double quotes"),
        ([], "name a matrix, a folder of tests or a settings file"),
    ],
)
def test_what_cannot_be_used_is_said_with_exit_code_2(project, capsys, arguments, said):
    assert main(["pipeline", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_planning_imports_nothing_heavy(project):
    code = (
        "import sys; from staticfire.harness.cli import main; main(['pipeline', 'p.toml', '--output', 'x.yaml'])\n"
        "heavy = {'torch', 'transformers', 'triton'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=project)


LOCAL = """
[pipeline]
program = "{python} -m staticfire"

[[check]]
key = "configurations"
command = "{python} -m staticfire check suite --engine reference --format buildkite --output check.md"
annotation = "check.md"

[[tests]]
key = "suite"
path = "suite"
command = "{python} -m pytest -p no:cacheprovider -p no:buildkite-test-collector {{files}} --junitxml={{junit}}"
"""

SUITE = """
from vllm import LLM


def test_hybrid():
    llm = LLM("jamba-tiny", enable_chunked_prefill={chunked})
"""


def build(project, chunked, capfd):
    (project / "p.toml").write_text(LOCAL.format(python=sys.executable))
    (project / "suite").mkdir(exist_ok=True)
    (project / "suite" / "test_hybrid.py").write_text(SUITE.format(chunked=chunked))
    (project / "vllm.py").write_text("def LLM(*args, **kwargs): return None\n")
    (project / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    code = main(["pipeline", "p.toml", "--local"])
    return code, capfd.readouterr().out


@pytest.mark.slow
def test_a_planted_founding_fault_makes_the_check_red_with_the_annotation_shown(project, capfd):
    code, out = build(project, False, capfd)
    assert code == 1
    assert "--- annotation configurations (error)" in out
    assert "mamba" in out.split("--- annotation configurations")[1]
    assert "&#" not in out  # for a person, not for a browser
    assert re.search(r"^configurations +failed .*exit status 1$", out, re.MULTILINE)
    assert re.search(r"^suite +not run .*configurations failed$", out, re.MULTILINE)
    assert out.rstrip().endswith("the build is red")
    code, out = build(project, True, capfd)
    assert code == 0, out
    assert re.search(r"^suite +passed ", out, re.MULTILINE)
    assert "--- annotation suite (success)" in out
    assert out.rstrip().endswith("the build is green")
