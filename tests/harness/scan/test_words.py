"""The words of a server's command line: kept where they are all that reaches the engine, and only there."""

import json

import pytest

from staticfire.harness.scan.base import ScanConfig
from staticfire.harness.scan.scan import scan


@pytest.fixture
def words(tmp_path):
    def read(name, text):
        (tmp_path / name).write_text(text)
        (site,) = scan([tmp_path], config=ScanConfig()).sites
        (configuration,) = site.configurations
        return configuration.model, configuration.words

    return read


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vllm serve a/b --max-model-len", ("--max-model-len",)),
        ("vllm serve --model a/b -tp 2", ("-tp", "2")),
        ("vllm serve --enforce-eager a/b --max-model-len 4k", ("--enforce-eager", "--max-model-len", "4k")),
        ("python -m vllm.entrypoints.openai.api_server --model=a/b -O3 --x.y 1", ("-O3", "--x.y", "1")),
        ("vllm serve a/b --seed 1 --seed 2 extra", ("--seed", "1", "--seed", "2", "extra")),
        ("vllm serve a/b --hf-overrides '{}'", ("--hf-overrides", "{}")),
        ("vllm serve a/b --max-model-len $LENGTH", None),
        ("vllm serve a/b --config flags.yaml", None),
        ("vllm serve a/b --seed {seed}", None),
        ("vllm bench latency --model a/b --batch-size 4", None),
    ],
)
def test_shell(words, command, expected):
    assert words("run.sh", f"{command}\n") == ("a/b", expected)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('RemoteOpenAIServer("a/b", ["--seed", "3", "c"])', ("--seed", "3", "c")),
        ('RemoteOpenAIServer("a/b", ["--seed", 3])', None),
        ('RemoteOpenAIServer("a/b", ["--seed", unknown()])', None),
        ('RemoteOpenAIServer("a/b", ["--seed", "3"], override_hf_configs={"x": 1})', None),
    ],
)
def test_argument_lists(words, call, expected):
    assert words("test_it.py", f"def test_it():\n    {call}\n") == ("a/b", expected)


def test_yaml(words):
    command = json.dumps(["vllm", "serve", "a/b", "-q", "fp8"])
    text = f"services:\n  x:\n    image: vllm/vllm-openai\n    command: {command}\n"
    assert words("compose.yaml", text) == ("a/b", ("-q", "fp8"))


def test_words_outlive_a_cache(tmp_path):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "test_it.py").write_text('def test_it():\n    RemoteOpenAIServer("a/b", ["--seed", "3"])\n')
    config = ScanConfig(cache_dir=tmp_path / "cache")
    first, second = (scan([tmp_path / "suite"], config=config).sites for _ in range(2))
    assert first == second
    assert second[0].configurations[0].words == ("--seed", "3")
