"""SF608: a known keyword whose value cannot change what is computed."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.kernel_blocks import CHOOSES_KERNELS
from staticfire.engine.config.options import KNOWN
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find every keyword that is accepted and ignored."""
    imitated = draft.release.engine == "vllm"
    for name, value in draft.others.items():
        if KNOWN[name].effect == "none" and not (imitated and name in CHOOSES_KERNELS):
            yield name, value, None, f"{name} has no effect: {KNOWN[name].reason}"


RULE = RewriteRule(
    code="SF608",
    name="option-without-effect",
    summary="A keyword of vLLM is accepted without effect.",
    why="Its value decides how fast, where or how loudly something is done, not what is computed.",
    fix="None is needed.",
    since="0.1.0",
    fields=(),
    example=Example("llama", {"enforce_eager": True}),
    find=find,
)
