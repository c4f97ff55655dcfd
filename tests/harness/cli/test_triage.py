"""`staticfire triage` and `staticfire annotate` on a planted red build: groups, repair, sites, retry plan, agent."""

import json
import os
import shutil
import sys

import jsonschema
import pytest

from staticfire.harness.cli import main

FOUNDING = "AssertionError: Chunked prefill is required for mamba cache mode 'align'."
SOURCE = """from vllm import LLM


def test_first():
    LLM("jamba-tiny", enable_chunked_prefill=False)


def test_second():
    LLM("jamba-tiny", enable_chunked_prefill=False, block_size=32)
"""
JUNIT = f"""<testsuites><testsuite name="hybrid">
<testcase classname="hybrid.jamba-tiny" name="cell-a" time="2"><properties>
<property name="verdict" value="error"/></properties>
<error message="error: OSError: No space left on device" type="error">error
rerun: staticfire run hybrid --cell cell-a
</error></testcase>
<testcase classname="hybrid.jamba-tiny" name="cell-b" time="2"><properties>
<property name="verdict" value="passed"/></properties></testcase>
<testcase classname="suite.test_hybrid" name="test_first" time="1">
<failure message="{FOUNDING}">E  x</failure></testcase>
</testsuite></testsuites>"""
LOG = f"FAILED suite/test_hybrid.py::test_second - {FOUNDING}\n"


@pytest.fixture
def red(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "test_hybrid.py").write_text(SOURCE)
    (tmp_path / "reports" / "hybrid" / "1").mkdir(parents=True)
    (tmp_path / "reports" / "hybrid" / "1" / "junit.xml").write_text(JUNIT)
    (tmp_path / "unit.log").write_text(LOG)
    return tmp_path


def test_a_red_build_is_two_causes_with_the_rule_the_verified_repair_and_every_site(red, capsys):
    assert main(["triage", "reports", "unit.log", "--source", "suite"]) == 1
    out = capsys.readouterr().out
    assert "product: 2 failures: SF101 align-without-chunked-prefill" in out
    assert "fix (the engine accepts it): enable_prefix_caching=False, or enable_chunked_prefill=True" in out
    assert "suite/test_hybrid.py:5:5, suite/test_hybrid.py:9:5" in out
    assert "infrastructure: 1 failure: disk full" in out
    assert out.endswith("3 failures of 3: 1 root cause and 1 cause of infrastructure\n")


def test_only_what_a_machine_broke_is_tried_again(red, capsys):
    assert main(["triage", "reports", "unit.log", "--retry-plan"]) == 1
    assert capsys.readouterr().out == "staticfire run hybrid --cell cell-a\n"
    main(["triage", "reports", "unit.log", "--retry-plan", "--retry", "all"])
    assert capsys.readouterr().out.splitlines()[1] == (
        "pytest suite/test_hybrid.py::test_first suite/test_hybrid.py::test_second"
    )


def test_what_names_no_test_is_no_empty_plan_in_silence(red, capsys):
    (red / "agent.log").write_text("The agent was lost\n")
    assert main(["triage", "agent.log", "--retry-plan"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "1 failure of these names no test and no cell: run the whole job again" in told.err


def test_json_follows_the_published_schema_and_is_a_baseline(red, capsys, repo_root):
    main(["triage", "reports", "--format", "json", "--output", "before.json"])
    document = json.loads((red / "before.json").read_text())
    schema = json.loads((repo_root / "docs" / "schemas" / "triage.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    capsys.readouterr()
    assert main(["triage", "reports", "unit.log", "--baseline", "before.json"]) == 0
    assert "(known)" in capsys.readouterr().out
    (red / "more.log").write_text("FAILED a_test.py::test_x - KeyError: 'y'\n")
    assert main(["triage", "more.log", "--baseline", "before.json"]) == 1
    out = capsys.readouterr().out
    assert "1 failure (new): KeyError: 'y'" in out
    assert "gone since the baseline: 2 causes" in out
    assert main(["triage", "reports", "--baseline", "reports/hybrid/1/junit.xml"]) == 0


def test_step_keys_for_a_build_that_is_run_again(red, capsys):
    steps = "\n".join(
        f"- {{label: x, key: {key}, command: x, depends_on: {after}}}"
        for key, after in (("lint", "[]"), ("hybrid-1", "[lint]"), ("unit", "[]"))
    )
    (red / "p.yaml").write_text(f"steps:\n{steps}\n")
    arguments = ["triage", "reports", "unit.log", "--format", "step-keys", "--pipeline", "p.yaml"]
    main(arguments)
    assert json.loads(capsys.readouterr().out) == ["lint", "hybrid-1"]
    main([*arguments, "--retry", "all"])
    assert json.loads(capsys.readouterr().out) == ["lint", "hybrid-1", "unit"]
    (red / "p.yaml").write_text("steps:\n- {label: x, key: unit, command: x}\n")
    assert main(arguments) == 2
    assert "ask for a full run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["triage", "nowhere.xml"], "nowhere.xml: no such file"),
        (["triage", "bad.xml"], "bad.xml: not XML"),
        (["triage", "unit.log", "--format", "step-keys"], "need each other"),
        (["triage", "unit.log", "--engine", "vllm"], "--engine: about sources that are checked"),
        (["triage", "unit.log", "--source", "suite", "--engine-python", "x"], "is for --engine vllm"),
        (["triage", "unit.log", "--source", "suite", "--device", "h10"], "No device named 'h10'"),
        (["triage", "unit.log", "--baseline", "nowhere"], "nowhere"),
        (["triage", "unit.log", "--baseline", "other.json"], "not what `staticfire triage --format json` prints"),
        *(
            (["triage", "unit.log", "--baseline", name], said)
            for name, said in (
                ("list.json", "not what `staticfire triage --format json` prints"),
                ("five.json", "not what `staticfire triage --format json` prints"),
                ("unit.log", "neither JSON nor a JUnit file"),
                ("bytes", "neither JSON nor a JUnit file"),
            )
        ),
        (["annotate", "reports", "--context", "x" * 101], "1 to 100 characters"),
    ],
)
def test_what_cannot_be_used_is_said_with_exit_code_2(red, capsys, arguments, said):
    (red / "bad.xml").write_text("<testsuite>")
    (red / "other.json").write_text("{}")
    (red / "list.json").write_text("[]")
    (red / "five.json").write_text('{"schema": 1, "groups": 5}')
    (red / "bytes").write_bytes(b"\xff\xfe\x00{}")
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_green_build_is_fine(red, capsys):
    (red / "ok.log").write_text("== 3 passed ==\n")
    assert main(["triage", "ok.log"]) == 0
    assert capsys.readouterr().out == "no failure in 1 report\n"


def agent(folder, status):
    tools = folder / "bin"
    tools.mkdir()
    stand_in = tools / "buildkite-agent"
    stand_in.write_text(
        f'#!/bin/sh\necho "$@" > sent\ncat > body\n[ {status} -eq 0 ] || echo refused >&2\nexit {status}\n'
    )
    stand_in.chmod(0o755)
    return f"{tools}{os.pathsep}{os.environ['PATH']}"


def test_an_annotation_is_sent_with_its_context_and_style(red, capsys, monkeypatch):
    monkeypatch.setenv("PATH", agent(red, 0))
    assert main(["annotate", "reports/hybrid", "--context", "hybrid", "--expect", "2", "--send"]) == 0
    assert (red / "sent").read_text() == "annotate --context hybrid --style error\n"
    assert "1 of 2 shards reported so far" in (red / "body").read_text()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("status", [1, None])
def test_an_annotation_that_cannot_be_sent_is_told_and_fails_nothing(red, capsys, monkeypatch, status):
    monkeypatch.setenv("PATH", str(red) if status is None else agent(red, status))
    assert main(["annotate", "reports/hybrid", "--context", "hybrid", "--send"]) == 0
    assert "Warning: the annotation hybrid was not sent" in capsys.readouterr().err


def test_what_has_not_reported_yet_is_no_error_and_in_the_end_a_failure(red, capsys):
    assert main(["annotate", "reports/other", "--expect", "2"]) == 0
    assert "0 of 2 shards reported so far" in capsys.readouterr().out
    assert main(["annotate", "reports/other", "--expect", "2", "--final"]) == 0
    assert "never reported" in capsys.readouterr().out


def test_artifacts_that_were_fetched_keep_their_names_in_links(red, capsys):
    (red / "fetched").mkdir()
    (red / "reports").rename(red / "fetched" / "reports")
    assert main(["annotate", "reports", "--fetched", "fetched"]) == 0
    assert 'href="artifact://reports/hybrid/1/junit.xml"' in capsys.readouterr().out


@pytest.mark.slow
def test_an_installed_engine_is_asked_about_the_sources(red, capsys, monkeypatch, repo_root):
    monkeypatch.setenv("STATICFIRE_CACHE", str(red / "cache"))
    toy = red / "python-toy"
    tree = repo_root / "tests" / "support" / "toy_vllm"
    shutil.copytree(tree, red / "tree", ignore=shutil.ignore_patterns("__pycache__"))
    toy.write_text(f'#!/bin/sh\nPYTHONPATH={red / "tree"} exec {sys.executable} "$@"\n')
    toy.chmod(0o755)
    model = red / "models" / "toys" / "plain"
    model.mkdir(parents=True)
    (model / "config.json").write_text(json.dumps({"architectures": ["PlainForCausalLM"]}))
    (red / "suite" / "test_toy.py").write_text(
        "from vllm import EngineArgs\n\ndef test_it():\n    EngineArgs('toys/plain', act='refuse')\n"
    )
    (red / "toy.log").write_text("FAILED suite/test_toy.py::test_it - AssertionError: Chunked prefill is required.\n")
    engine = ["--engine", "vllm", "--engine-python", str(toy), "--model-configs", "models"]
    assert main(["triage", "toy.log", "--source", "suite/test_toy.py", *engine]) == 1
    out = capsys.readouterr().out
    assert "fix (the engine accepts it): drop act" in out
    assert "check finds it at: suite/test_toy.py:4:5" in out


@pytest.mark.parametrize("line", ["staticfire run hybrid --cell 'cell-a", "rm -rf / --no-preserve-root"])
def test_a_rerun_line_that_is_not_ours_is_never_offered(tmp_path, capsys, line):
    report = tmp_path / "junit.xml"
    report.write_text(
        '<testsuite name="s" tests="1"><testcase classname="hybrid" name="cell-a"><properties>'
        '<property name="verdict" value="failed"/></properties>'
        f"<failure message='no'>rerun: {line.replace(chr(39), '&apos;')}</failure></testcase></testsuite>"
    )
    for options in (["--retry", "all", "--retry-plan"], [], ["--format", "json"], ["--format", "buildkite"]):
        code = main(["triage", str(report), *options])
        out, err = capsys.readouterr()
        assert code == 1, err
        assert "alone:" not in out
        assert json.loads(out)["groups"][0]["failures"][0]["rerun"] == "" if "json" in options else True
        if "--retry-plan" in options:
            assert out == ""
            assert "names no test and no cell" in err
