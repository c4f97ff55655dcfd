"""What every cell of a matrix is asked, besides its configuration."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Prompts = Literal["all", "around-a-block"]
PROMPTS: Final[tuple[Prompts, ...]] = get_args(Prompts)
RelationName = Literal[
    "block-boundaries",
    "chunk-split",
    "state-reuse",
    "prefix-hit",
    "later-block",
    "aborts",
    "reused-id",
    "prompt-logprobs",
    "sampling",
    "stops",
    "admission-order",
    "preemption",
    "eviction",
]
RELATION_NAMES: Final[tuple[RelationName, ...]] = get_args(RelationName)


@dataclass(frozen=True, slots=True)
class Workload:
    """A small one is for engines that take a second a step.

    Attributes:
        prompts: `all`, or the two `around-a-block`: one token less than a run-time block, which the answer fills, and
            one token more, whose block a second run finds.
        max_tokens: Tokens generated after each prompt.
        relations: The relations looked at, of those that a configuration promises.
    """

    prompts: Prompts = "all"
    max_tokens: int = 16
    relations: tuple[RelationName, ...] = RELATION_NAMES
