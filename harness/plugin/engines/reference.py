"""The reference engine under test. Imported when a test starts it: it brings torch."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from staticfire.engine.llm import LLM
from staticfire.engine.outputs import RequestOutput
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import TokenLogprobs
from staticfire.harness.plugin.engines.base import Generated, Logprob, Logprobs, Sample
from staticfire.harness.plugin.models import local_checkpoint


class RunningReference:
    """A started `LLM`."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm

    def generate(self, prompts: Sequence[str | list[int]], params: Any) -> list[Generated]:
        """See `RunningEngine.generate`."""
        return [_generated(output) for output in self.llm.generate(list(prompts), params)]

    def sampling(self, **options: Any) -> SamplingParams:
        """See `RunningEngine.sampling`."""
        return SamplingParams(**options)

    def close(self) -> None:
        """See `RunningEngine.close`."""
        self.llm.close()


class Reference:
    """Starts the engine in `staticfire.engine`."""

    name: Final = "reference"
    hidden: Final[Mapping[str, Any]] = {}

    def start(self, model: str, typed: Mapping[str, Any]) -> RunningReference:
        """See `EngineUnderTest.start`."""
        known = {keyword: value for keyword, value in typed.items() if value is not None}
        return RunningReference(LLM(local_checkpoint(model), **known))


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
