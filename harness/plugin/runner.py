"""`VllmRunner`: the engine under test behind the class, the keywords and the defaults of vLLM's own test suite.

The defaults are part of the meaning: `enable_chunked_prefill=False` is what that suite types for every test, so a test
that says nothing asks for just that. None is the way to ask for the engine's own default.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.plugin.engines.base import Generated, RunningEngine
from staticfire.harness.plugin.engines.registry import ENGINES
from staticfire.harness.plugin.keywords import SIGNATURE, start_engine
from staticfire.harness.plugin.models import announce
from staticfire.harness.plugin.threads import engine_threads

DEFAULT: Final = "reference"

_under_test = DEFAULT
_uses: list[str] = []


def use(engine: str | None) -> None:
    """Choose the engine under test for this process; None chooses the default. No weights stay from before."""
    global _under_test  # noqa: PLW0603 -- one a process, as the runner's class is
    _under_test = engine or DEFAULT
    release()


def release() -> None:
    """Let the weights go that are kept for the next test: for one that changed how weights are loaded."""
    reference = sys.modules.get("staticfire.harness.plugin.engines.reference")
    if reference is not None:
        reference.SHELF.clear()


def under_test() -> str:
    """The engine under test."""
    return _under_test


def uses() -> int:
    """How many starts and runs of engines there were in this process: what a guard compares before and after a test."""
    return len(_uses)


TokensText = tuple[list[int], str]


class VllmRunner:
    """An engine under test; a context manager.

    Attributes:
        model_name: As the test names the model.
        typed: The keywords as they were given to the engine, without those of value None.
        llm: The engine's own object.
    """

    def __init__(self, model_name: str, *, default_torch_num_threads: int | None = None, **typed: Any) -> None:
        """Start the engine.

        Args:
            model_name: A name of `matrices/models/`, a folder, or an id that stands for one of ours.
            default_torch_num_threads: Threads of torch while the engine lives; None leaves an xdist worker its share.
            **typed: Engine keywords; what is left out is as in `start_engine`, and None asks for the engine's default.

        Raises:
            ConfigError: The engine refuses (for vLLM: RefusedError), with the name of each broken rule.
        """
        self.model_name = model_name
        announce(model_name)
        _uses.append(model_name)  # a start is a use: it may be what is refused, and what the test is about
        with ExitStack() as stack:
            stack.enter_context(engine_threads(default_torch_num_threads))
            engine = ENGINES[_under_test]()
            hidden = {keyword: value for keyword, value in engine.hidden.items() if keyword not in typed}
            self.typed: dict[str, Any] = {}

            def launch(model: str, /, **keywords: Any) -> RunningEngine:
                self.typed.update(hidden, **keywords)
                return engine.start(model, self.typed)

            self._engine = start_engine(launch, model_name, **typed)
            self._stack = stack.pop_all()

    @classmethod
    def of_cell(cls, cell: Cell, **changes: Any) -> Self:
        """Start the engine as a cell says, with the engine's defaults for all else: a matrix speaks for users."""
        return cls.as_typed(cell.model, **{**cell.config, **changes})

    @classmethod
    def as_typed(cls, model_name: str, **typed: Any) -> Self:
        """Start the engine with these keywords and no default of a test suite, as a drawn configuration means it."""
        return cls(model_name, **{**dict.fromkeys(SIGNATURE), **typed})

    @property
    def llm(self) -> Any:
        """The engine's own object."""
        return self._engine.llm

    def get_llm(self) -> Any:
        """The engine's own object, by the name of the method in vLLM's suite."""
        return self._engine.llm

    def generate(
        self, prompts: Sequence[str | list[int]], sampling_params: Any, **_: Any
    ) -> list[tuple[list[list[int]], list[str]]]:
        """Continue prompts; each answer has the tokens and the texts of all continuations, prompt included."""
        return [
            (
                [output.prompt_token_ids + one.token_ids for one in output.samples],
                [output.prompt + one.text for one in output.samples],
            )
            for output in self._run(prompts, sampling_params)
        ]

    def generate_w_logprobs(self, prompts: Sequence[str | list[int]], sampling_params: Any) -> list[tuple[Any, ...]]:
        """Continue prompts; tokens, text and logprobs of the first continuation, and the prompt's logprobs, if any."""
        found = []
        for output in self._run(prompts, sampling_params):
            first = output.samples[0]
            answer = (first.token_ids, first.text, first.logprobs)
            found.append(answer if output.prompt_logprobs is None else (*answer, output.prompt_logprobs))
        return found

    def generate_greedy(self, prompts: Sequence[str | list[int]], max_tokens: int) -> list[TokensText]:
        """Continue prompts greedily; tokens and text, prompt included."""
        params = self._engine.sampling(temperature=0.0, max_tokens=max_tokens)
        return [(tokens[0], texts[0]) for tokens, texts in self.generate(prompts, params)]

    def generate_greedy_logprobs(
        self,
        prompts: Sequence[str | list[int]],
        max_tokens: int,
        num_logprobs: int | None,
        num_prompt_logprobs: int | None = None,
        stop_token_ids: Sequence[int] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Continue prompts greedily; generated tokens, their text and the top candidates at each position."""
        options = {} if stop_token_ids is None else {"stop_token_ids": tuple(stop_token_ids)}
        params = self._engine.sampling(
            temperature=0.0,
            max_tokens=max_tokens,
            logprobs=num_logprobs,
            prompt_logprobs=num_prompt_logprobs,
            **options,
        )
        return self.generate_w_logprobs(prompts, params)

    def generate_prompt_perplexity(self, prompts: Sequence[str | list[int]]) -> list[float]:
        """The perplexity of each prompt under the model."""
        import math  # noqa: PLC0415 -- the only use

        params = self._engine.sampling(temperature=0.0, max_tokens=1, prompt_logprobs=0)
        found = []
        for output in self._run(prompts, params):
            entries = (output.prompt_logprobs or [])[1:]
            tokens = output.prompt_token_ids[1:]
            values = [entry[token].logprob for entry, token in zip(entries, tokens, strict=True) if entry is not None]
            found.append(math.exp(-sum(values) / len(values)) if values else math.nan)
        return found

    def _run(self, prompts: Sequence[str | list[int]], params: Any) -> list[Generated]:
        outputs = self._engine.generate(prompts, params)
        _uses.append(self.model_name)
        return outputs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._engine.close()
        finally:
            self._stack.close()
