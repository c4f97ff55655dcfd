"""`HfRunner`: transformers behind the class of vLLM's test suite. Imported when a test uses it: it brings torch.

Loaded models are kept, two of them, so that the cells of one model load it once a worker. One that a test reached into
is not: it may be another one by then.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import torch

from staticfire.engine.worker.shelf import Shelf, stamp
from staticfire.harness.oracle.isolation import import_transformers
from staticfire.harness.oracle.transformers import load_model, torch_dtype
from staticfire.harness.plugin.models import announce, local_checkpoint
from staticfire.harness.plugin.threads import engine_threads

KEPT: Final = 2


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model with its tokenizer."""

    model: Any
    tokenizer: Any


SHELF: Final[Shelf[Loaded]] = Shelf(KEPT)
_uses: list[str] = []


def uses() -> int:
    """How many starts and runs there were in this process."""
    return len(_uses)


def release() -> None:
    """Let the kept models go."""
    SHELF.clear()


class HfRunner:
    """transformers on a model; a context manager.

    Attributes:
        model_name: As the test names the model.
    """

    def __init__(self, model_name: str, dtype: str = "auto", **ignored: Any) -> None:
        """Load a model, or take one that was loaded for a test before.

        Args:
            model_name: A tiny model of ours, a folder, or an id that stands for one.
            dtype: `float32`, `bfloat16`, …; `auto` and `half` as vLLM reads them.
            **ignored: What vLLM's class takes besides; a tiny model needs none of it, and a true value that would
                change the model is refused.

        Raises:
            ValueError: A keyword that this runner has no meaning for.
        """
        refused = sorted(name for name, value in ignored.items() if name not in _HARMLESS and value)
        if refused:
            raise ValueError(f"hf_runner: {', '.join(refused)}: this runner only loads causal language models as saved")
        announce(model_name)
        _uses.append(model_name)  # a start is a use: it may be what is refused, and what the test is about
        self.model_name = model_name
        self._loaded = _load(model_name, dtype)
        self._untouched = True

    @property
    def model(self) -> Any:
        """The transformers model, the test's own from now on: the next one has a fresh one."""
        self._untouched = False
        return self._loaded.model

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer, likewise."""
        self._untouched = False
        return self._loaded.tokenizer

    def generate(self, prompts: Sequence[str], **options: Any) -> list[tuple[list[list[int]], list[str]]]:
        """Continue prompts one by one; tokens and texts, prompt included."""
        found = []
        for prompt in prompts:
            tokens = self._generate(prompt, **options).sequences.tolist()
            found.append((tokens, self._loaded.tokenizer.batch_decode(tokens, skip_special_tokens=True)))
        return found

    def generate_greedy(self, prompts: Sequence[str], max_tokens: int, **options: Any) -> list[tuple[list[int], str]]:
        """Continue prompts greedily; tokens and text, prompt included."""
        outputs = self.generate(prompts, do_sample=False, max_new_tokens=max_tokens, **options)
        return [(tokens[0], texts[0]) for tokens, texts in outputs]

    def generate_greedy_logprobs_limit(
        self, prompts: Sequence[str], max_tokens: int, num_logprobs: int | None, **options: Any
    ) -> list[tuple[list[int], str, list[dict[int, float]]]]:
        """Continue prompts greedily; generated tokens, their text and the top logprobs at each position."""
        found = []
        for prompt in prompts:
            output = self._generate(prompt, do_sample=False, max_new_tokens=max_tokens, output_logits=True, **options)
            tokens = output.sequences[0, -len(output.logits) :].tolist()
            rows = [torch.log_softmax(row[0].float(), dim=-1) for row in output.logits]
            text = self._loaded.tokenizer.decode(tokens, skip_special_tokens=True)
            found.append((tokens, text, [_top(row, num_logprobs or 0) for row in rows]))
        return found

    def _generate(self, prompt: str, **options: Any) -> Any:
        inputs = self._loaded.tokenizer(prompt, return_tensors="pt")
        kept = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        _uses.append(self.model_name)
        try:
            with engine_threads(), torch.inference_mode():
                return self._loaded.model.generate(
                    **kept,
                    use_cache=True,
                    return_dict_in_generate=True,
                    pad_token_id=self._loaded.tokenizer.pad_token_id,
                    **options,
                )
        except BaseException:
            self._untouched = False
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the model for the next test; `release` lets it go."""
        if self._untouched:
            self._untouched = False
            SHELF.give_back(self._loaded)


_HARMLESS: Final = ("trust_remote_code", "revision", "model_kwargs", "default_torch_num_threads", "tokenizer_name")


def _load(model: str, dtype: str) -> Loaded:
    checkpoint = local_checkpoint(model)
    if dtype in ("auto", "half", "float"):
        written = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
        saved = str(written.get("dtype") or written.get("torch_dtype") or "float32")
        dtype = {"auto": saved, "half": "float16", "float": "float32"}[dtype]

    def load() -> Loaded:
        network, _ = load_model(checkpoint, torch_dtype(dtype))
        return Loaded(network, import_transformers().AutoTokenizer.from_pretrained(checkpoint, local_files_only=True))

    return SHELF.borrow((stamp(checkpoint), dtype), load)


def _top(row: torch.Tensor, count: int) -> dict[int, float]:
    values, tokens = row.topk(max(count, 1))
    return dict(zip(tokens.tolist(), values.tolist(), strict=True))
