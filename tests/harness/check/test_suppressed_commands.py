"""Suppression comments on any line of a command that is written over several."""

import json
from pathlib import Path

import pytest

from staticfire.harness.cli import main

FLAGS = ("--mamba-cache-mode align", "--no-enable-chunked-prefill")
ALLOW = "# staticfire: allow SC101 -- known"
SCRIPTS = {
    "last": ("a.sh", f"vllm serve jamba-tiny \\\n  {FLAGS[0]} \\\n  {FLAGS[1]}  {ALLOW}\n"),
    "between": ("a.sh", f"vllm serve jamba-tiny \\\n  {FLAGS[0]} \\\n  {ALLOW}\n  {FLAGS[1]}\n"),
    "above": ("a.sh", f"{ALLOW}\nvllm serve jamba-tiny \\\n  {FLAGS[0]} \\\n  {FLAGS[1]}\n"),
    "literal": ("a.yaml", f"- |\n  ls\n  vllm serve jamba-tiny \\\n    {FLAGS[0]} \\\n    {FLAGS[1]}  {ALLOW}\n- b\n"),
    "folded": ("a.yaml", f"- >-\n  vllm serve jamba-tiny\n  {FLAGS[0]}\n  {FLAGS[1]}  {ALLOW}\n- b\n"),
    "plain": ("a.yaml", f"- vllm serve jamba-tiny\n  {FLAGS[0]}\n  {FLAGS[1]}  {ALLOW}\n- b\n"),
    "list": (
        "a.yaml",
        f"command: [vllm, serve, jamba-tiny, --mamba-cache-mode,\n  align, {FLAGS[1]}]  {ALLOW}\nnext: 1\n",
    ),
}


def findings(capsys: pytest.CaptureFixture[str]) -> list[str]:
    main(["check", ".", "--engine", "reference", "--no-cache", "--format", "json"])
    return [finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_comment_on_a_line_of_the_command_is_seen(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text = SCRIPTS[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).write_text(text.replace(ALLOW, "# nothing"))
    assert findings(capsys) == ["SC101"]
    (tmp_path / file).write_text(text)
    assert findings(capsys) == []


def test_a_comment_behind_the_command_is_not_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(f"command:\n- vllm\n- serve\n- jamba-tiny\n- {' '.join(FLAGS)}\n\nb: 1  {ALLOW}\n")
    (tmp_path / "a.sh").write_text(f"vllm serve jamba-tiny {' '.join(FLAGS)}\nls  {ALLOW}\n")
    assert "SC101" in findings(capsys)
