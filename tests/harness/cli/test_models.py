"""`staticfire models`."""

from pathlib import Path

import pytest

from staticfire.harness.cli import main


@pytest.mark.parametrize("arguments", [["models"], ["models", "list"]])
def test_list(capsys, arguments):
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1] == "runs" for line in lines}
    assert rows["jamba-tiny"] is True
    assert rows["qwen3.6-35b-a3b"] is False
    assert len(rows) == 13


def test_path_of_one_that_was_not_made(capsys, tmp_path):
    assert main(["models", "path", "jamba-tiny", "--cache", str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(str(tmp_path))


@pytest.mark.engine
@pytest.mark.slow
def test_make_prints_the_folder_and_path_finds_it(capsys, tmp_path):
    assert main(["models", "make", "llama-tiny", "--cache", str(tmp_path)]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert (folder / "model.safetensors").is_file()
    assert main(["models", "path", "llama-tiny", "--cache", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["make", "jamba-tny"], "Did you mean 'jamba-tiny'?"),
        (["make", "bamba-9b"], "bamba-9b is only resolved, never run"),
        (["path", "nonsense"], "No model named 'nonsense'."),
        (["make"], "Missing argument 'NAME'"),
        (["mak", "x"], "No such command 'mak'"),
    ],
)
def test_usage_faults_exit_2(capsys, arguments, message):
    assert main(["models", *arguments]) == 2
    assert message in capsys.readouterr().err
