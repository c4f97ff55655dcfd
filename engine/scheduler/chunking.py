"""How many tokens of one request go into this step. Pure; imports no torch."""

from dataclasses import dataclass

from staticfire.engine.cache.spec import CacheLayout, MambaSpec
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.request import Request
from staticfire.engine.scheduler.aligned_split import aligned_length


@dataclass(frozen=True, slots=True)
class Chunking:
    """The limits that do not change from step to step.

    Attributes:
        max_tokens: Tokens of one step.
        max_chunk: Tokens of one request in one step.
        chunked: Whether a prompt may be spread over steps.
        align_block: Tokens between two kept recurrent states, None where none are kept.
    """

    max_tokens: int
    max_chunk: int
    chunked: bool
    align_block: int | None

    @classmethod
    def of(cls, config: EngineConfig, layout: CacheLayout) -> "Chunking":
        """Take the limits from a configuration; the threshold means nothing to prompts that are never cut."""
        scheduler = config.scheduler
        budget, threshold = scheduler.max_num_batched_tokens, scheduler.long_prefill_token_threshold
        cut = scheduler.enable_chunked_prefill and 0 < threshold < budget
        blocks = [
            group.spec.block_size
            for group in layout.groups
            if isinstance(group.spec, MambaSpec) and group.spec.mode == "align"
        ]
        return cls(
            max_tokens=budget,
            max_chunk=threshold if cut else budget,
            chunked=scheduler.enable_chunked_prefill,
            align_block=min(blocks, default=None),
        )

    def length(self, request: Request, start: int, budget: int, junction: int) -> int:
        """Return the tokens of `request` to compute from `start` on, 0 if it has to wait for a later step.

        Args:
            request: Whose tokens.
            start: Tokens already computed or found in the prefix cache.
            budget: Tokens left in this step, at least 1.
            junction: See `aligned_length`.
        """
        remaining = request.num_tokens - start
        if remaining == 1:
            return 1
        length = min(remaining, budget, self.max_chunk)
        if not self.chunked and request.num_computed_tokens == 0 and length < remaining <= self.max_tokens:
            # Longer than any step can be only a replay after preemption: cut, since it would wait for ever.
            return 0
        if self.align_block is None:
            return length
        return aligned_length(
            start=start,
            proposed=length,
            num_prompt_tokens=request.num_prompt_tokens,
            num_tokens=request.num_tokens,
            block_size=self.align_block,
            max_chunk=self.max_chunk,
            junction=junction,
        )
