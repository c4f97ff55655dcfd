"""Settle the section `scheduler`."""

from typing import Final

from staticfire.engine.config.device import Device
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.resolution import Value

GIB: Final = 2**30
A100: Final = (8, 0)
"""A100: a large token budget lowers its throughput, so vLLM keeps it in the small tier whatever its memory."""

TOKENS, SEQS, LENGTH, CHUNKED = (
    "scheduler.max_num_batched_tokens",
    "scheduler.max_num_seqs",
    "scheduler.max_model_len",
    "scheduler.enable_chunked_prefill",
)


def batch_defaults(device: Device, world_size: int) -> tuple[int, int]:
    """Defaults of (`max_num_batched_tokens`, `max_num_seqs`) for offline use, by memory tier as in vLLM."""
    if device.type == "cpu":
        return 4096 * world_size, 256 * world_size
    if device.memory_bytes >= 160 * GIB:
        return 16384, 1024
    if device.memory_bytes >= 70 * GIB and device.capability != A100:
        return 16384, 1024
    return 8192, 256


def settle_scheduler(draft: Draft) -> None:
    """Settle chunking first, then the budgets: their defaults depend on it."""
    typed = draft.typed
    draft.values[LENGTH] = Value(
        draft.max_model_len, "derived", "max_model_len is one number", ("model.max_model_len",)
    )
    if typed.enable_chunked_prefill is None:
        draft.enable_chunked_prefill = True
        draft.values[CHUNKED] = Value(True, "default")
    else:
        draft.enable_chunked_prefill = draft.keep(CHUNKED, typed.enable_chunked_prefill)
    _settle_budgets(draft)
    draft.long_prefill_token_threshold = draft.plain("scheduler.long_prefill_token_threshold", Value(0, "default"))
    draft.scheduling_policy = draft.plain("scheduler.policy", Value("fcfs", "default"))


def _settle_budgets(draft: Draft) -> None:
    typed = draft.typed
    tokens, seqs = batch_defaults(draft.device, draft.world_size)
    wanted_seqs = typed.max_num_seqs or seqs
    if typed.max_num_batched_tokens is not None:
        draft.max_num_batched_tokens = draft.keep(TOKENS, typed.max_num_batched_tokens)
    else:
        draft.max_num_batched_tokens = _default_budget(draft, tokens, wanted_seqs)
    if typed.max_num_seqs is not None:
        draft.max_num_seqs = draft.keep(SEQS, typed.max_num_seqs)
    elif seqs > draft.max_num_batched_tokens:
        because = "more sequences than tokens in a step could never run together"
        draft.max_num_seqs = draft.derive(SEQS, draft.max_num_batched_tokens, because, TOKENS)
    else:
        draft.max_num_seqs = seqs
        draft.values[SEQS] = Value(seqs, "default")


def _default_budget(draft: Draft, default: int, seqs: int) -> int:
    """The token budget that nobody typed; never one that a rule would refuse."""
    budget, because = default, ""
    parents: tuple[str, ...] = ()
    if not draft.enable_chunked_prefill and draft.max_model_len > budget:
        budget = draft.max_model_len
        because = "without chunked prefill a whole prompt must fit into one step"
        parents = (CHUNKED, "model.max_model_len")
    if seqs > budget and draft.release.budget_follows_sequences:
        budget, because, parents = seqs, "every sequence needs a token in a step", (SEQS,)
    if seqs * draft.max_model_len < budget:
        budget = seqs * draft.max_model_len
        because = "max_num_seqs * max_model_len tokens are all there can be"
        parents = (SEQS, "model.max_model_len")
    if not because:
        draft.values[TOKENS] = Value(budget, "default")
        return budget
    draft.derive(TOKENS, budget, because, *parents)
    return budget
