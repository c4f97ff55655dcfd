"""`--config FILE` on a command line: the file's values, as the engine's own command line would read them."""

import os
from pathlib import Path
from typing import Any

import pytest

from staticfire.harness.scan.base import Configuration, ScanConfig, Unknown
from staticfire.harness.scan.scan import scan

FILE = """# values of every kind
model: m/file
block-size: 32
gpu_memory_utilization: 0.5
enforce-eager: true
enable-prefix-caching: false
served-model-name: [a, b]
cudagraph-capture-sizes: []
compilation-config: {mode: 3, pass_config: {fuse_norm: true}}
hf-overrides.max_position: 7
port: 12323
"""
SAID = {
    "block_size": 32,
    "gpu_memory_utilization": 0.5,
    "enforce_eager": True,
    "enable_prefix_caching": False,
    "served_model_name": ["a", "b"],
    "compilation_config": {"mode": 3, "pass_config": {"fuse_norm": True}},
    "hf_overrides": {"max_position": 7},
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `s/inner` to scan, not the current one."""
    (tmp_path / "s" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def served(script: str, path: str = "s/inner/run.sh", *, named: str = "s", **options: Any) -> Configuration:
    """The one configuration of a script that is written to `path`."""
    Path(path).write_text(script)
    found = scan([named], config=ScanConfig(**options))
    (site,) = (site for site in found.sites if site.where.path.endswith(Path(path).name))
    (item,) = site.configurations
    return item


def values(item: Configuration) -> dict[str, Any]:
    return {name: typed.value for name, typed in item.keywords.items()}


def test_the_files_values_are_part_of_the_command(suite: Path) -> None:
    (suite / "s" / "inner" / "c.yaml").write_text(FILE)
    item = served("vllm serve --config c.yaml")
    assert item.model == "m/file"
    assert values(item) == SAID
    assert item.full
    assert item.front_end["port"].value == 12323
    where = item.keywords["block_size"].where
    assert (where.path, where.line, where.column) == ("s/inner/c.yaml", 3, 1)


def test_what_is_typed_wins_before_and_behind_the_file(suite: Path) -> None:
    (suite / "s" / "inner" / "c.yaml").write_text(FILE)
    item = served("vllm serve m/typed --block-size 16 --config c.yaml --no-enforce-eager --compilation-config.mode 1")
    assert item.model == "m/typed"
    assert values(item) == SAID | {"block_size": 16, "enforce_eager": False, "compilation_config": {"mode": 1}}


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("s/inner/c.yaml", "c.yaml"),
        ("s/c.yml", "c.yml"),
        ("s/configs/c.yaml", "configs/c.yaml"),
        ("s/c.yaml", "../c.yaml"),
        ("s/inner/c.yaml", "s/inner/c.yaml"),
        ("s/inner/c.yaml", "./c.yaml"),
    ],
)
def test_it_is_looked_for_where_the_script_may_have_been_started(place: str, name: str, suite: Path) -> None:
    (suite / place).parent.mkdir(exist_ok=True)
    (suite / place).write_text("block-size: 32\n")
    item = served(f"vllm serve m/one --config {name}")
    assert values(item) == {"block_size": 32}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({}, "c.yaml"),
        ({"c.yaml": "block-size: 1"}, "../../c.yaml"),
        ({"c.yaml": "block-size: 1"}, "c.yaml"),
        ({"s/inner/c.yaml": "block-size: 1", "s/c.yaml": "block-size: 2"}, "c.yaml"),
        ({"s/inner/c.yaml": "- a\n- b"}, "c.yaml"),
        ({"s/inner/c.yaml": "a: [\n"}, "c.yaml"),
        ({"s/inner/c.yaml": "[a]: b"}, "c.yaml"),
        ({"s/inner/c.json": "{}"}, "c.json"),
        ({"s/inner/c.yaml": "a: " + "[" * 3000}, "c.yaml"),
        ({}, "$CONFIG"),
        ({}, "/dev/zero.yaml"),
    ],
    ids=["none", "outside", "cwd is outside", "two", "list", "broken", "key", "json", "deep", "variable", "absolute"],
)
def test_what_cannot_be_found_leaves_the_site_open(files: dict[str, str], name: str, suite: Path) -> None:
    for path, text in files.items():
        (suite / path).write_text(text)
    item = served(f"vllm serve --config {name} --seed 3")
    assert isinstance(item.model, Unknown)
    assert not item.complete
    assert item.missing in {"config file", "environment"}
    assert values(item) == {"seed": 3}


@pytest.mark.timeout(20)
def test_a_pipe_is_no_config_file(suite: Path) -> None:
    os.mkfifo(suite / "s" / "inner" / "c.yaml")
    assert not served("vllm serve m/one --config c.yaml").complete


def test_a_scanned_script_alone_has_its_own_folder(suite: Path) -> None:
    (suite / "s" / "inner" / "c.yaml").write_text("block-size: 32\n")
    assert values(served("vllm serve m/one --config c.yaml", named="s/inner/run.sh")) == {"block_size": 32}


def test_python_and_yaml_commands_name_files_too(suite: Path) -> None:
    (suite / "s" / "inner" / "c.yaml").write_text("block-size: 32\n")
    python = 'import subprocess\nsubprocess.run(["vllm", "serve", "m/one", "--config", "c.yaml"])\n'
    assert values(served(python, "s/inner/run.py")) == {"block_size": 32}
    assert values(served("- vllm serve m/one --config c.yaml", "s/inner/steps.yaml")) == {"block_size": 32}


def test_a_file_that_changes_or_appears_is_seen(suite: Path) -> None:
    cache = suite / "cache"
    script = "vllm serve m/one --config c.yaml"
    assert not served(script, named="s/inner/run.sh", cache_dir=cache).complete
    for size in (16, 32):
        (suite / "s" / "inner" / "c.yaml").write_text(f"block-size: {size}\nseed: {size}\n" + "#" * size)
        assert values(served(script, named="s/inner/run.sh", cache_dir=cache))["block_size"] == size
