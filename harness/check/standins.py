"""What the configuration of an architecture, in place of a model's own, cannot say."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from staticfire.harness.check.messages import normalise
from staticfire.harness.check.question import Question
from staticfire.harness.probe.base import Rejected

QUANTIZED: Final = re.compile(
    r"gptq|awq|bnb|gguf|quark|compressed|(?<![a-z])(?:nv|mx)?fp[48](?!\d)|(?<![a-z])int[48](?!\d)|w\d+a\d+|\d-?bits?(?![a-z])",
    re.IGNORECASE,
)
"""Words in the name of a model that say that its checkpoint is quantized."""


def silent(question: Question, answer: Rejected, drafts: Sequence[str]) -> str:
    """Why a refusal of a stand-in says nothing of the model itself; empty where it may.

    Args:
        question: What was asked, with the stand-in in place of its model.
        answer: The refusal.
        drafts: Models named inside the arguments.
    """
    if _drafts_for_itself(question) and any(seen.field == "speculative.method" for seen in answer.values):
        return "whether a model holds its own draft is in its own configuration"
    if "quant" in answer.message.lower() and QUANTIZED.search(question.model):
        return "how its checkpoint is quantized is in its own configuration"
    if drafts and "draft" in answer.message.lower() and "<n>" in normalise(answer.message):
        return "whether a draft fits the model is in their own configurations"
    return ""


def _drafts_for_itself(question: Question) -> bool:
    """Whether the draft is typed to be layers of the model itself (multi-token prediction)."""
    given = question.arguments.get("speculative_config")
    return isinstance(given, Mapping) and not given.get("model") and str(given.get("method")).endswith("mtp")
