"""`staticfire matrix`: what it prints, its exit codes, its JSON, and what it does not import."""

import json
import subprocess
import sys

import jsonschema
import pytest

from staticfire.harness.cli import main


@pytest.fixture
def hybrid_text(repo_root):
    return (repo_root / "matrices" / "hybrid.toml").read_text(encoding="utf-8")


def test_cells_verdicts_and_the_rule_that_refuses_each_invalid_one(capsys):
    assert main(["matrix", "hybrid"]) == 0
    out = capsys.readouterr().out
    refused = [line for line in out.splitlines() if line.startswith("refused")]
    assert any("SF101 align-without-chunked-prefill: " in line for line in refused)
    assert all(" SF" in line for line in refused)
    assert sum(line.startswith("valid") for line in out.splitlines()) >= 50
    assert "in every cell: max_model_len=512" in out
    assert out.rstrip().endswith("the engine agrees")


def test_json_follows_the_published_schema(capsys, repo_root):
    assert main(["matrix", "hybrid", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((repo_root / "docs" / "schemas" / "matrix.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert document["summary"]["cells"] == len(document["cells"])
    assert all((cell["verdict"] == "refused") == bool(cell["rules"]) for cell in document["cells"])
    assert all(entry["feasible"] == entry["covered"] for entry in document["summary"]["combinations"]["covered"])


def test_select(capsys):
    assert (
        main(["matrix", "hybrid", "--select", "model=llama-tiny", "--select", "block_size=32", "--format", "ids"]) == 0
    )
    ids = capsys.readouterr().out.split()
    assert ids
    assert all(cell_id.startswith("llama-tiny-") and "-b32" in cell_id for cell_id in ids)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hybird"], "Did you mean 'hybrid'?"),
        (["hybrid", "--select", "modle=x"], "no axis named 'modle'. Did you mean 'model'?"),
        (["hybrid", "--select", "model=lama-tiny"], "Did you mean 'llama-tiny'?"),
        (["hybrid", "--select", "model"], "expected AXIS=VALUE"),
        (["hybrid", "--format", "yaml"], "'yaml' is not one of"),
        (["hybrid", "--selct", "model=x"], "--select"),
        ([], "Missing argument 'FILE'"),
    ],
)
def test_usage_faults_exit_2_and_name_the_nearest(capsys, arguments, message):
    assert main(["matrix", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_naming_an_excluded_combination_says_why_it_does_not_exist(capsys):
    assert main(["matrix", "hybrid", "--select", "model=llama-tiny", "--select", "mamba_cache_mode=align"]) == 2
    assert "a dense model keeps no recurrent state" in capsys.readouterr().err


def test_a_wrong_declaration_is_a_finding(capsys, tmp_path, hybrid_text):
    path = tmp_path / "wrong.toml"
    start = hybrid_text.index('[[constraint]]\nwhen = { model = "llama-tiny", quantization')
    path.write_text(hybrid_text[:start] + hybrid_text[hybrid_text.index("[cover]") :])
    assert main(["matrix", str(path)]) == 1
    out = capsys.readouterr().out
    assert "findings:" in out
    assert "the matrix says valid, the engine says refused by SF401" in out


def test_a_rule_that_does_not_refuse_is_a_finding(capsys, tmp_path, hybrid_text):
    path = tmp_path / "wrong.toml"
    path.write_text(hybrid_text.replace('rule = "SF201"', 'rule = "SF202"'))
    assert main(["matrix", str(path), "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {(f["declared"], f["answered"]) for f in findings} == {("refused by SF202", "refused by SF201")}


def test_every_asks_about_all_combinations(capsys, tmp_path, hybrid_text):
    path = tmp_path / "wrong.toml"
    path.write_text(
        hybrid_text.replace(
            "enable_prefix_caching = { not = false }, enable_chunked", "enable_prefix_caching = true, enable_chunked"
        )
    )
    assert main(["matrix", str(path), "--every", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert len(document["findings"]) > len(document["cells"])


def test_faults_in_the_file_are_all_shown_with_their_lines(capsys, tmp_path, hybrid_text):
    path = tmp_path / "bad.toml"
    path.write_text(hybrid_text.replace("[cover]", "[cver]").replace("block_size = [16", "block_sise = [16"))
    assert main(["matrix", str(path)]) == 2
    err = capsys.readouterr().err
    assert "cver: unknown key. Did you mean 'cover'?" in err
    assert "did you mean 'block_size'" in err
    assert f"{path}:" in err


def test_it_imports_neither_torch_nor_transformers():
    code = (
        "import sys; from staticfire.harness.cli import main; main(['matrix', 'hybrid', '--format', 'ids']);"
        "sys.exit(f\"{set(sys.modules) & {'torch', 'transformers', 'numpy', 'rich'}}\""
        " if set(sys.modules) & {'torch', 'transformers', 'numpy', 'rich'} else 0)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
