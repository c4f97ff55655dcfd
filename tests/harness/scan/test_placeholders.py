"""What documentation puts where a reader is to put something: not known, never a value, never a missing one."""

import json
from pathlib import Path

import pytest

from staticfire.harness.scan.base import Configuration, Unknown
from staticfire.harness.scan.scan import scan

PLACED = ["<N>", "<max num seqs>", "...", "…", "{{ n }}", "{{n}}", "${{ matrix.n }}", "YOUR_NUMBER", "N", "[...]"]


def one(folder: Path, name: str, text: str) -> Configuration:
    (folder / name).write_text(text)
    (site,) = scan([folder]).sites
    (item,) = site.configurations
    return item


@pytest.mark.parametrize("placed", PLACED)
@pytest.mark.parametrize("way", ["shell", "equals", "yaml", "list", "python"])
def test_a_placeholder_is_no_value(placed: str, way: str, tmp_path: Path) -> None:
    words = ["vllm", "serve", "a/b", "--max-num-seqs", placed, "--dtype", "half"]
    if way == "shell":
        item = one(tmp_path, "a.sh", f"vllm serve a/b --max-num-seqs {placed} --dtype half\n")
    elif way == "equals":
        item = one(tmp_path, "a.sh", f"vllm serve a/b --max-num-seqs={placed} --dtype half\n")
    elif way == "yaml":
        item = one(tmp_path, "a.yaml", f"x: |\n  vllm serve a/b --max-num-seqs {placed} --dtype half\n")
    elif way == "list":
        item = one(tmp_path, "a.yaml", f"command: {json.dumps(words)}\n")
    else:
        item = one(tmp_path, "test_a.py", f"def test_a():\n    run({words!r})\n")
    value = item.keywords["max_num_seqs"].value if "max_num_seqs" in item.keywords else Unknown(item.missing)
    assert isinstance(value, Unknown)
    assert value.reason == "placeholder" or item.missing == "placeholder"
    assert item.keywords["dtype"].value == "half"
    assert item.words is None
    assert not item.full


@pytest.mark.parametrize("placed", ["...", "…", "[...]", "[OPTIONS]", "<more flags>", "{{ flags }}"])
def test_further_words_are_open(placed: str, tmp_path: Path) -> None:
    item = one(tmp_path, "a.sh", f"vllm serve a/b --dtype half {placed}\n")
    assert (item.model, item.complete, item.missing, item.words) == ("a/b", False, "placeholder", None)


@pytest.mark.parametrize("placed", ["<model>", "<your model>", "YOUR_MODEL", "{{ model }}", "your-org/<model>"])
def test_the_model_may_be_one(placed: str, tmp_path: Path) -> None:
    item = one(tmp_path, "a.sh", f"vllm serve {placed} --seed 3\n")
    assert isinstance(item.model, Unknown)
    assert item.keywords["seed"].value == 3


@pytest.mark.parametrize(
    ("flag", "value", "known"),
    [
        ("attention-backend", "FLASH_ATTN", "FLASH_ATTN"),
        ("reasoning-config", '\'{"reasoning_start_str": "<think>"}\'', {"reasoning_start_str": "<think>"}),
        ("served-model-name", "X", "X"),
        ("revision", "v1...v2", "v1...v2"),
    ],
)
def test_what_only_looks_like_one_is_a_value(flag: str, value: str, known: object, tmp_path: Path) -> None:
    item = one(tmp_path, "a.sh", f"vllm serve a/b --{flag} {value}\n")
    assert item.full
    assert item.keywords[flag.replace("-", "_")].value == known
