"""The oracle of first resort: Hugging Face transformers on the same checkpoint.

The continuation comes from a one-shot prefill followed by single-token steps (a step of several tokens at once is never
asked for: Jamba ignores its recurrent state there), without an end-of-sequence token. The values come from one forward
pass over prompt and continuation, in at least float32. The distance between the two, under equal routing, is the noise.
"""

import inspect
import json
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from staticfire.harness.oracle.base import Array, Noise, OracleError, Question, Replay, Tokens, Trace, top_entries
from staticfire.harness.oracle.families import Family, family_of
from staticfire.harness.oracle.isolation import import_transformers
from staticfire.harness.oracle.quantize import EXPERT_QUANTIZERS
from staticfire.harness.oracle.store import digest
from staticfire.harness.oracle.tap import RouterTap

CODE = ("base.py", "families.py", "quantize.py", "tap.py", "transformers.py")
"""Files that decide answers; stored answers of other content are not read."""

MAX_SELF_DIFFERENCE = 1e-5
"""A family whose stepped run differs from its full run by more nats (root mean square) in fp32 cannot judge an engine.

Rounding alone gives 2e-6 to 5e-6 on the tiny models, an algorithm that differs (Bamba's) 2e-3.
"""

VALUES_DTYPE = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.float32,
    "float16": torch.float32,
}
"""Engine dtype -> dtype in which the oracle computes the values it is compared with."""

MODELS_KEPT = 4


@dataclass(frozen=True, slots=True)
class _Run:
    """One pass or one stepped run: rows [n, V], router logits [L, T, E], routing [L, T, k], the n tokens."""

    tokens: Tokens
    rows: Array
    router_logits: Array
    routing: Array


class TransformersOracle:
    """Asks transformers. Models stay loaded (`MODELS_KEPT` of them) for the next prompt."""

    name = "transformers"

    def __init__(self) -> None:
        self._models: OrderedDict[tuple[Path, torch.dtype, str | None, str], tuple[nn.Module, Family]] = OrderedDict()

    @cached_property
    def version(self) -> str:
        """This code, transformers and torch; found without importing transformers."""
        here = Path(__file__).resolve().parent
        code = digest(*((here / name).read_text(encoding="utf-8") for name in CODE))
        return f"{code}-transformers-{version('transformers')}-torch-{torch.__version__}"

    def trace(self, question: Question, prompt: Tokens) -> Trace:
        """See `Oracle.trace`."""
        _check(question, prompt)
        native = torch_dtype(question.dtype)
        model, family = self._model(question, native)
        judge, _ = self._model(question, VALUES_DTYPE[question.dtype])
        stepped = _stepped(model, family, prompt, question)
        values = _full(judge, family, prompt, stepped.tokens, stepped.routing)
        noise = _distance(stepped, values)
        if model is judge:
            if not question.rounds_states:
                _check_self(question, noise)
        else:
            one_shot = _full(model, family, prompt, stepped.tokens, stepped.routing)
            other = _distance(one_shot, values)
            noise = Noise(max(noise.max, other.max), max(noise.rms, other.rms), max(noise.router, other.router))
        return Trace(prompt, stepped.tokens, values.rows, values.router_logits, values.routing, noise)

    def replay(self, question: Question, prompt: Tokens, tokens: Tokens, routing: Array) -> Replay:
        """See `Oracle.replay`."""
        _check(question, prompt)
        judge, family = self._model(question, VALUES_DTYPE[question.dtype])
        run = _full(judge, family, prompt, tokens, routing)
        return Replay(run.rows, run.router_logits)

    def score(self, question: Question, tokens: Tokens, last: int, routing: Array | None) -> Array:
        """See `Oracle.score`."""
        _check(question, tokens)
        judge, family = self._model(question, VALUES_DTYPE[question.dtype])
        return _rows(judge, family, tokens, last, routing)[0].numpy()

    def _model(self, question: Question, dtype: torch.dtype) -> tuple[nn.Module, Family]:
        source = question.dtype if question.quantization else "float32"
        key = (question.checkpoint, dtype, question.quantization, source)
        if key in self._models:
            self._models.move_to_end(key)
        else:
            self._models[key] = load_model(question.checkpoint, dtype, question.quantization, torch_dtype(source))
            if len(self._models) > MODELS_KEPT:
                self._models.popitem(last=False)
        return self._models[key]


def load_model(
    checkpoint: Path, dtype: torch.dtype, quantization: str | None = None, source: torch.dtype = torch.float32
) -> tuple[nn.Module, Family]:
    """Load a checkpoint through transformers, with the expert weights a quantization would leave.

    Experts are looped over one by one (`eager`): the grouped paths have float32 inside.

    Args:
        checkpoint: Its folder.
        dtype: dtype the model computes in.
        quantization: Makes the expert weights q * s, kept in float32 whatever `dtype` (float64 in float64).
        source: dtype in which an engine has the expert weights in hand when it quantizes them.

    Raises:
        OracleError: The family or the quantization is unknown.
    """
    transformers = import_transformers()
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    family = family_of(config, checkpoint, transformers.__version__)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        checkpoint, dtype=torch.float32, local_files_only=True, attn_implementation="sdpa"
    ).eval()
    if family.experts is not None:
        model.set_experts_implementation("eager")
    weights = _expert_weights(model, family, quantization, source)
    model.to(dtype)
    for experts, tensors in weights.items():
        _keep_float32(experts, tensors, dtype)
    return model, family


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of an engine dtype.

    Raises:
        OracleError: The oracle has no values for it.
    """
    if name not in VALUES_DTYPE:
        raise OracleError(f"dtype {name!r}: the transformers oracle knows {', '.join(VALUES_DTYPE)}")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _expert_weights(
    model: nn.Module, family: Family, method: str | None, source: torch.dtype
) -> dict[nn.Module, dict[str, Tensor]]:
    if method is None:
        return {}
    if method not in EXPERT_QUANTIZERS:
        raise OracleError(f"quantization {method!r}: the transformers oracle knows {', '.join(EXPERT_QUANTIZERS)}")
    return {
        module: {name: EXPERT_QUANTIZERS[method](getattr(module, name).to(source)) for name in family.expert_weights}
        for module in model.modules()
        if type(module).__name__ == family.experts
    }


def _keep_float32(experts: nn.Module, weights: dict[str, Tensor], dtype: torch.dtype) -> None:
    """Give a module of experts float32 weights (float64 in a float64 model) amid a model of another dtype."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    for name, weight in weights.items():
        setattr(experts, name, nn.Parameter(weight.to(wide), requires_grad=False))

    def widen(module: nn.Module, args: tuple[Tensor, Tensor, Tensor]) -> Any:  # noqa: ARG001 - torch's signature
        hidden, indices, probabilities = args
        return hidden.to(wide), indices, probabilities.to(wide)

    def narrow(module: nn.Module, args: Any, output: Tensor) -> Tensor:  # noqa: ARG001 - torch's signature
        return output.to(dtype)

    if wide != dtype:
        experts.register_forward_pre_hook(widen)
        experts.register_forward_hook(narrow)


@torch.inference_mode()
def _stepped(model: Any, family: Family, prompt: Tokens, question: Question) -> _Run:
    """Greedy: the whole prompt at once, then one token a step, caches rounded as the engine keeps them in between."""
    rows: list[Tensor] = []
    tokens: list[int] = []
    fed = torch.tensor([prompt])
    cache = None
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    with RouterTap(model, family) as tap:
        for _ in range(question.max_tokens):
            output = model(input_ids=fed, use_cache=True, logits_to_keep=1, **{name: cache})
            cache = getattr(output, name)
            _round_caches(cache, question)
            rows.append(_logprobs(output.logits[0, -1:]))
            tokens.append(int(rows[-1].argmax()))
            fed = torch.tensor([tokens[-1:]])
    return _Run(tuple(tokens), torch.cat(rows).numpy(), tap.logits, tap.chosen)


@torch.inference_mode()
def _full(model: Any, family: Family, prompt: Tokens, tokens: Tokens, routing: Array) -> _Run:
    """Teacher forcing: prompt and tokens in one pass, under the routing given."""
    rows, tap = _rows(model, family, prompt + tokens[:-1], len(tokens), routing)
    return _Run(tokens, rows.numpy(), tap.logits, tap.chosen)


@torch.inference_mode()
def _rows(model: Any, family: Family, fed: Tokens, last: int, routing: Array | None) -> tuple[Tensor, RouterTap]:
    """Log-probabilities [last, V] after each of the last tokens fed, in one pass."""
    with RouterTap(model, family, forced=routing) as tap:
        logits = model(input_ids=torch.tensor([fed]), use_cache=False, logits_to_keep=last).logits[0]
    return _logprobs(logits), tap


def _logprobs(logits: Tensor) -> Tensor:
    wide = logits if logits.dtype == torch.float64 else logits.float()
    rows = torch.log_softmax(wide, dim=-1)
    if not torch.isfinite(rows).all():
        raise OracleError("transformers itself computes NaN or infinity on this checkpoint")
    return rows


def _round_caches(cache: Any, question: Question) -> None:
    """Keep what is cached no better than the engine does: its rounding is noise, too."""
    for layer in cache.layers:
        for states, kept in (("recurrent_states", question.ssm_dtype), ("conv_states", question.conv_dtype)):
            for state in (getattr(layer, states, None) or {}).values():
                _round(state, kept)
        for tensor in (getattr(layer, "keys", None), getattr(layer, "values", None)):
            _round(tensor, question.kv_dtype)


def _round(tensor: Tensor | None, kept: str | None) -> None:
    if kept is not None and tensor is not None and tensor.dtype.itemsize > torch_dtype(kept).itemsize:
        tensor.copy_(tensor.to(torch_dtype(kept)))


def _distance(run: _Run, values: _Run) -> Noise:
    picked = top_entries(values.rows)
    delta = np.take_along_axis(run.rows, picked, -1) - np.take_along_axis(values.rows, picked, -1)
    router = np.abs(run.router_logits - values.router_logits)
    return Noise(
        max=float(np.abs(delta).max()),
        rms=float(np.sqrt(np.mean(np.square(delta, dtype=np.float64)))),
        router=float(router.max()) if router.size else 0.0,
    )


def _check(question: Question, prompt: Tokens) -> None:
    if not prompt:
        raise OracleError("the prompt is empty")
    if question.max_tokens < 1:
        raise OracleError(f"max_tokens={question.max_tokens}: must be at least 1")


def _check_self(question: Question, noise: Noise) -> None:
    if noise.rms > MAX_SELF_DIFFERENCE:
        raise OracleError(
            f"{question.checkpoint}: transformers' stepped and full runs differ by {noise.rms:.2e} nats (rms) in "
            f"{question.dtype}, more than {MAX_SELF_DIFFERENCE:.0e}; it cannot judge this model"
        )
