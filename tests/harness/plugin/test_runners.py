"""Runners by vLLM's names: the founding test in both its forms, and suites that move over with an import."""

import pytest

from staticfire.harness.models import catalog
from staticfire.harness.plugin import models

pytestmark = [pytest.mark.engine, pytest.mark.slow]

FOUNDING = """
    import pytest
    from staticfire.harness.plugin.helpers import HF_EXAMPLE_MODELS, is_quant_method_supported

    MODELS = ["ai21labs/Jamba-tiny-random"]

    @pytest.mark.skipif(not is_quant_method_supported("experts_int8"), reason="no experts_int8 here")
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("dtype", ["bfloat16"])
    @pytest.mark.parametrize("max_tokens", [4])
    def test_model_experts_int8_startup(hf_runner, vllm_runner, example_prompts, model, dtype, max_tokens):
        model_info = HF_EXAMPLE_MODELS.find_hf_info(model)
        model_info.check_transformers_version(on_fail="skip")

        with vllm_runner(model, dtype=dtype, enforce_eager=True, quantization="experts_int8"{fix}) as vllm_model:
            vllm_model.generate_greedy(example_prompts, max_tokens)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["serial", "xdist"])
def test_the_founding_test_fails_with_the_rules_name_and_passes_once_mended(suite, workers):
    suite.write("test_before.py", FOUNDING.format(fix=""))
    suite.write("test_after.py", FOUNDING.format(fix=", enable_chunked_prefill=None"))
    run = suite.run(*workers, "--sf-guards=all")
    name = "test_model_experts_int8_startup[4-bfloat16-ai21labs/Jamba-tiny-random]"
    assert run.outcomes == {f"test_before::{name}": "failed", f"test_after::{name}": "passed"}
    assert "SF101 align-without-chunked-prefill" in run.text
    assert "ai21labs/Jamba-tiny-random stood for the local model jamba-tiny" in run.text


OUTPUTS = """
    import pytest
    from staticfire.harness.plugin import hf_runner as loaded
    from staticfire.harness.plugin.helpers import check_logprobs_close, check_outputs_equal

    @pytest.mark.matrix("toy.toml", verdict="valid")
    def test_outputs(cell, cell_runner, hf_runner, example_prompts):
        prompts = [prompt for prompt in example_prompts if len(prompt) < 30]
        assert len(prompts) > 1
        with cell_runner(dtype="float32") as llm, hf_runner(cell.model, dtype="float32") as hf:
            check_outputs_equal(
                outputs_0_lst=hf.generate_greedy(prompts, 8),
                outputs_1_lst=llm.generate_greedy(prompts, 8),
                name_0="hf",
                name_1="engine",
            )
            check_logprobs_close(
                outputs_0_lst=hf.generate_greedy_logprobs_limit(prompts, 8, 5),
                outputs_1_lst=llm.generate_greedy_logprobs(prompts, 8, 5),
                name_0="hf",
                name_1="engine",
                always_check_logprobs=True,
            )
            assert llm.generate_prompt_perplexity(prompts[1:])[0] > 1

    def test_models_were_loaded_once():
        assert len(loaded.SHELF.loads) == len(set(loaded.SHELF.loads)) > 0
"""


def test_cells_agree_with_transformers_whose_model_is_loaded_once(suite):
    suite.write("test_it.py", OUTPUTS)
    run = suite.run("--sf-guards=assertions,skips")
    assert run.code == 0, run.text
    assert len(run.outcomes) == 7


FAKE_VLLM = """
    class SamplingParams:
        def __init__(self, **options):
            self.options = options

    class _One:
        token_ids, text, logprobs = (5, 6), "ab", [{5: 0.0}, {6: 0.0}]

    class _Output:
        def __init__(self, prompt):
            self.prompt = prompt if isinstance(prompt, str) else None
            self.prompt_token_ids = [1] if isinstance(prompt, str) else prompt["prompt_token_ids"]
            self.outputs, self.prompt_logprobs = [_One()], None

    class LLM:
        def __init__(self, model, **typed):
            self.typed = typed
            if typed.get("enable_chunked_prefill") is False:
                raise AssertionError("Chunked prefill is required for mamba cache mode 'align'.")

        def generate(self, prompts, sampling_params):
            return [_Output(prompt) for prompt in prompts]
"""
WITH_VLLM = """
    import pytest

    @pytest.mark.matrix("toy.toml", model="jamba-tiny", block_size=16)
    def test_cell(cell, cell_runner):
        with cell_runner() as engine:
            assert "block_size" in engine.llm.typed
            assert "tokenizer" not in engine.llm.typed
            assert engine.generate_greedy(["x", [7]], 2) == [([1, 5, 6], "xab"), ([7, 5, 6], "ab")]
            assert engine.generate_greedy_logprobs(["x"], 2, 1) == [([5, 6], "ab", [{5: 0.0}, {6: 0.0}])]

    def test_defaults(vllm_runner):
        with vllm_runner("a/b", enable_chunked_prefill=None) as engine:
            assert engine.llm.typed["compilation_config"] == {"cudagraph_capture_sizes": [4]}
            assert engine.llm.typed["max_model_len"] == 1024
            engine.generate_greedy(["x"], 1)
"""


def test_vllm_is_started_under_the_same_names_and_its_refusals_are_judged_by_its_words(suite):
    suite.write("lib/vllm/__init__.py", FAKE_VLLM)
    suite.write("lib/vllm/distributed.py", "def cleanup_dist_env_and_memory(): ...\n")
    suite.write("test_it.py", WITH_VLLM)
    run = suite.run("--sf-engine=vllm", "--sf-guards=assertions", PYTHONPATH=str(suite.folder / "lib"))
    assert run.code == 0, run.text
    refused = run.properties["test_it::test_cell[jamba-tiny-unchunked-b16]"]
    assert (refused["engine"], refused["refused_by"]) == ("vllm", "SF101")
    changed = FAKE_VLLM.replace("Chunked prefill is required", "something else is wrong")
    suite.write("lib/vllm/__init__.py", changed)
    run = suite.run("--sf-engine=vllm", PYTHONPATH=str(suite.folder / "lib"))
    assert run.outcomes["test_it::test_cell[jamba-tiny-unchunked-b16]"] == "failed"
    assert "not in the words of SF101" in run.text


def test_vllm_that_is_not_installed_is_told(suite):
    suite.write("test_it.py", WITH_VLLM)
    assert "install vLLM beside pytest" in suite.run("--sf-engine=vllm", "-k", "defaults").text


def test_the_registry_knows_ids_names_and_versions(monkeypatch):
    info = models.HF_EXAMPLE_MODELS.find_hf_info("ai21labs/Jamba-tiny-random")
    assert (info.local, info.architecture, info.is_available_online) == ("jamba-tiny", "JambaForCausalLM", True)
    assert info.check_transformers_version(on_fail="error") is None
    monkeypatch.setattr(models, "version", lambda _: "4.55.2")
    assert "4.55.2 is here" in (info.check_transformers_version(on_fail="return") or "")
    with pytest.raises(RuntimeError, match=r"needs 4\.56"):
        info.check_transformers_version(on_fail="error")
    with pytest.raises(pytest.skip.Exception, match="version: "):
        info.check_transformers_version(on_fail="skip")
    with pytest.raises(ValueError, match="Did you mean 'ai21labs/Jamba-tiny-random'"):
        models.HF_EXAMPLE_MODELS.find_hf_info("ai21labs/Jamba-tiny-randon")
    assert set(models.STANDS_FOR.values()) <= set(catalog.names())


def test_quantizations_are_the_engines_own():
    assert models.is_quant_method_supported("experts_int8")
    assert not models.is_quant_method_supported("awq")
    assert not models.is_quant_method_supported("no_such_method")
