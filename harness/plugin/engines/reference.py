"""The reference engine under test. Imported when a test starts it: it brings torch.

Every test has an engine of its own: caches, requests, counters and seeds begin anew. Only the weights of the last one
are kept, for the next test that needs the same ones.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from staticfire.engine.core import EngineCore
from staticfire.engine.executor.inline import InlineExecutor
from staticfire.engine.layers.attention import Attention
from staticfire.engine.llm import LLM
from staticfire.engine.outputs import RequestOutput
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import TokenLogprobs
from staticfire.engine.worker.shelf import Shelf, loading_from
from staticfire.harness.plugin.engines.base import Generated, Logprob, Logprobs, Sample
from staticfire.harness.plugin.models import local_checkpoint

if TYPE_CHECKING:
    from staticfire.engine.models.base import Decoder

SHELF: "Final[Shelf[Decoder]]" = Shelf()
"""Of this process; one model, whatever its size."""


class RunningReference:
    """A started `LLM`."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        core: EngineCore | None = getattr(llm.client, "core", None)
        self._untouched = core is not None and isinstance(core.executor, InlineExecutor)

    @property
    def llm(self) -> LLM:
        """See `RunningEngine`. Whoever looks inside may change the weights, so they are not kept."""
        self._untouched = False
        return self._llm

    def generate(self, prompts: Sequence[str | list[int]], params: Any) -> list[Generated]:
        """See `RunningEngine.generate`."""
        try:
            return [_generated(output) for output in self._llm.generate(list(prompts), params)]
        except BaseException:
            self._untouched = False
            raise

    def sampling(self, **options: Any) -> SamplingParams:
        """See `RunningEngine.sampling`."""
        return SamplingParams(**options)

    def close(self) -> None:
        """See `RunningEngine.close`. What nobody but the engine had in hand is there for the next test."""
        model = self._llm.core.runner.model if self._untouched else None
        self._untouched = False
        self._llm.close()
        if model is not None:
            _unbind(model)
            SHELF.give_back(model)


class Reference:
    """Starts the engine in `staticfire.engine`."""

    name: Final = "reference"
    hidden: Final[Mapping[str, Any]] = {}

    def start(self, model: str, typed: Mapping[str, Any]) -> RunningReference:
        """See `EngineUnderTest.start`."""
        known = {keyword: value for keyword, value in typed.items() if value is not None}
        with loading_from(SHELF):
            return RunningReference(LLM(local_checkpoint(model), **known))


def _unbind(model: "Decoder") -> None:
    """Let the caches go: only weights are kept."""
    nothing = torch.empty(0)
    for layer in model.layers:
        mixer = layer.mixer
        if isinstance(mixer, Attention):
            mixer.bind(-1, nothing)
        else:
            mixer.bind(-1, nothing, nothing)


def _generated(output: RequestOutput) -> Generated:
    samples = [
        Sample(list(one.token_ids), one.text, None if one.logprobs is None else _candidates(one.logprobs))
        for one in output.outputs
    ]
    prompt = output.prompt_logprobs
    told = None if prompt is None else [None if entry is None else _candidate(entry) for entry in prompt]
    return Generated(output.prompt or "", list(output.prompt_token_ids), samples, told)


def _candidates(entries: Sequence[TokenLogprobs]) -> Logprobs:
    return [_candidate(entry) for entry in entries]


def _candidate(entry: TokenLogprobs) -> dict[int, Logprob]:
    """The top tokens by rank, and the token that followed, which need not be among them."""
    found = {token: Logprob(value, rank) for rank, (token, value) in enumerate(entry.top, start=1)}
    found.setdefault(entry.token_id, Logprob(entry.logprob))
    return found
