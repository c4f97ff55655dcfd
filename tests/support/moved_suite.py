"""vLLM's test of Jamba with experts in int8, as a suite has it that moved over to the pytest plugin."""

import json
from pathlib import Path

MODEL = "ai21labs/Jamba-tiny-random"

BY_FIXTURE = """
import pytest

MODELS = ["ai21labs/Jamba-tiny-random"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dtype", ["bfloat16"])
@pytest.mark.parametrize("max_tokens", [4])
def test_model_experts_int8_startup(hf_runner, vllm_runner, example_prompts, model, dtype, max_tokens):
    with vllm_runner(model, dtype=dtype, enforce_eager=True, quantization="experts_int8") as vllm_model:
        vllm_model.generate_greedy(example_prompts, max_tokens)
"""
BY_IMPORT = "from staticfire.harness.plugin.runner import VllmRunner\n" + BY_FIXTURE.replace(
    "hf_runner, vllm_runner, ", ""
).replace("with vllm_runner(", "with VllmRunner(")

FORMS = {"fixture": BY_FIXTURE, "import": BY_IMPORT}


def mended(text: str, value: object) -> str:
    """The suite with chunked prefill typed at the call."""
    return text.replace('"experts_int8")', f'"experts_int8", enable_chunked_prefill={value})')


def write(folder: Path, repo_root: Path, text: str) -> list[str]:
    """Put the suite and the model's configuration into a folder; the arguments with which both are checked."""
    described = json.loads((repo_root / "matrices" / "models" / "jamba-v0.1.json").read_text(encoding="utf-8"))
    config = folder / "configs" / MODEL / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps(described["config"]), encoding="utf-8")
    (folder / "pyproject.toml").write_text("", encoding="utf-8")
    (folder / "test_experts_int8.py").write_text(text, encoding="utf-8")
    return [str(folder / "test_experts_int8.py"), "--model-configs", str(folder / "configs")]


def place_of(keyword: str, repo_root: Path) -> tuple[str, int]:
    """End of the path, and line, at which the plugin has the default of a keyword."""
    file = repo_root / "harness" / "plugin" / "keywords.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    (line,) = (number for number, text in enumerate(lines, start=1) if text.startswith(f"    {keyword}: "))
    return "harness/plugin/keywords.py", line
