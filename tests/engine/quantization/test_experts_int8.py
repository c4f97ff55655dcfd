"""experts_int8 against transformers with the weights W' = q * s, worked out here in NumPy."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from staticfire.engine.errors import EngineError
from staticfire.engine.layers.linear import Linear
from staticfire.engine.layers.moe import SparseMoe
from staticfire.engine.llm import LLM
from staticfire.engine.outputs import RequestOutput
from staticfire.engine.quantization.registry import quantization_method
from staticfire.engine.sampling_params import SamplingParams

pytestmark = pytest.mark.engine

FILE = "model.safetensors"


def quantize(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row by row: s = max |w| / 127 in float32 (1 for zeros), q = w / s rounded half to even."""
    scale = np.abs(weight).max(axis=1) / np.float32(127)
    scale[scale == 0] = 1
    return np.clip(np.rint(weight / scale[:, None]), -127, 127).astype(np.int8), scale


@pytest.fixture(scope="module")
def rounded(jamba: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint with every expert weight replaced by q * s in float32, and one expert row of zeros."""
    folder = Path(shutil.copytree(jamba, tmp_path_factory.mktemp("int8") / "rounded"))
    tensors = load_file(folder / FILE)
    for name, tensor in tensors.items():
        if ".experts." in name:
            q, scale = quantize(tensor.numpy())
            tensors[name] = torch.from_numpy(q.astype(np.float32) * scale[:, None])
    save_file(tensors, folder / FILE, metadata={"format": "pt"})
    return folder


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randint(3, 512, (n,), generator=generator).tolist() for n in (2, 9, 33)]


def run(folder: Path, dtype: str = "float32", **config: Any) -> list[RequestOutput]:
    with LLM(folder, dtype=dtype, **config) as llm:
        return llm.generate(prompts(), SamplingParams(max_tokens=8, ignore_eos=True, logprobs=0, prompt_logprobs=0))


def logprobs_of(output: RequestOutput) -> list[float]:
    entries = [*(output.prompt_logprobs or [])[1:], *(output.outputs[0].logprobs or [])]
    return [entry.logprob for entry in entries if entry is not None]


def distances(folder: Path, outputs: list[RequestOutput]) -> list[float]:
    """Distance of every logprob from that of transformers with the checkpoint in `folder`, in float32."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found: list[float] = []
    for output in outputs:
        sequence = output.prompt_token_ids + output.outputs[0].token_ids
        with torch.inference_mode():
            rows = model(torch.tensor([sequence[:-1]]), use_cache=False).logits[0].log_softmax(-1)
        wanted = rows.gather(1, torch.tensor(sequence[1:])[:, None])[:, 0].tolist()
        found += np.abs(np.subtract(logprobs_of(output), wanted)).tolist()
    return found


def test_equals_transformers_with_the_rounded_weights(jamba: Path, rounded: Path):
    """As closely as two float32 implementations agree without any quantization, some 1e-5 for this checkpoint."""
    floor = max(distances(jamba, run(jamba)))
    assert floor < 3e-5
    quantized = run(jamba, quantization="experts_int8")
    assert max(distances(rounded, quantized)) <= max(1e-5, 2 * floor)
    assert max(distances(jamba, quantized)) > 1e-2, "quantization changed nothing, so this test would see nothing"


def experts_of(llm: LLM, layer: int) -> SparseMoe:
    feed_forward = llm.core.runner.model.layers[layer].feed_forward
    assert isinstance(feed_forward, SparseMoe)
    return feed_forward


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_and_scales_are_those_of_the_formula(jamba: Path, dtype: str):
    """The same int8 weights and float32 scales whatever the compute dtype; nothing is zero that was not."""
    saved = load_file(jamba / FILE)
    with LLM(jamba, dtype=dtype, quantization="experts_int8") as llm:
        for layer in (0, 3):
            w13, w2, w13_scale, w2_scale = experts_of(llm, layer).experts
            assert w13.dtype == w2.dtype == torch.int8
            assert w13_scale is not None
            assert w2_scale is not None
            assert w13_scale.dtype == w2_scale.dtype == torch.float32
            for expert in range(4):
                name = f"model.layers.{layer}.feed_forward.experts.{expert}"
                parts = [saved[f"{name}.{part}_proj.weight"].numpy() for part in ("gate", "up", "down")]
                gate_up, down = quantize(np.concatenate(parts[:2])), quantize(parts[2])
                np.testing.assert_array_equal(w13[expert].numpy(), gate_up[0])
                np.testing.assert_array_equal(w13_scale[expert].numpy(), gate_up[1])
                np.testing.assert_array_equal(w2[expert].numpy(), down[0])
                np.testing.assert_array_equal(w2_scale[expert].numpy(), down[1])
                assert np.abs(gate_up[0]).max(axis=1).min() == 127


def test_only_experts_are_quantized(jamba: Path):
    saved = load_file(jamba / FILE)
    with LLM(jamba, dtype="float32", quantization="experts_int8") as llm:
        model = llm.core.runner.model
        assert isinstance(model.lm_head, Linear)
        assert torch.equal(model.lm_head.weight.t(), saved["lm_head.weight"])
        assert torch.equal(experts_of(llm, 0).router.weight.t(), saved["model.layers.0.feed_forward.router.weight"])


def test_a_row_of_zeros_has_scale_one(jamba: Path, tmp_path: Path):
    folder = Path(shutil.copytree(jamba, tmp_path / "zeros"))
    tensors = load_file(folder / FILE)
    tensors["model.layers.0.feed_forward.experts.1.up_proj.weight"][5] = 0
    save_file(tensors, folder / FILE)
    with LLM(folder, dtype="float32", quantization="experts_int8") as llm:
        w13, _, w13_scale, _ = experts_of(llm, 0).experts
        assert w13_scale is not None
        assert w13_scale[1, 128 + 5] == 1
        assert not w13[1, 128 + 5].any()
    outputs = run(folder, quantization="experts_int8")
    assert all(np.isfinite(logprobs_of(output)).all() for output in outputs)


def test_bfloat16_scales_after_accumulating(jamba: Path, rounded: Path):
    """Close to float32 with the rounded weights, within what bfloat16 itself costs without quantization."""
    exact = run(rounded)
    ours = run(jamba, "bfloat16", quantization="experts_int8")
    plain = run(jamba, "bfloat16")
    truth = run(jamba)
    for output, wanted, a, b in zip(ours, exact, plain, truth, strict=True):
        prompt = len(output.prompt_token_ids) - 1
        off = np.abs(np.subtract(logprobs_of(output)[:prompt], logprobs_of(wanted)[:prompt])).mean()
        noise = np.abs(np.subtract(logprobs_of(a)[:prompt], logprobs_of(b)[:prompt])).mean()
        assert off < 2 * noise + 0.05


def test_a_model_without_experts_is_refused(llama: Path):
    with pytest.raises(EngineError, match="no experts"):
        LLM(llama, dtype="float32", quantization="experts_int8")


def test_unknown_method():
    with pytest.raises(EngineError, match=r"quantization='fp7'.*experts_int8"):
        quantization_method("fp7")
