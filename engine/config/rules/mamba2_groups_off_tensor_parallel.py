"""SF305: ranks share the groups of B and C evenly, or all keep the only one."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.families.states import Mamba2State
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.rules.ranks import fewer_ranks


def check(draft: Draft) -> str | None:
    """Refuse ranks that do not divide the groups, unless there is one group to copy."""
    state, ranks = draft.model.state_shapes, draft.tensor_parallel_size
    if not isinstance(state, Mamba2State) or state.groups == 1 or state.groups % ranks == 0:
        return None
    return f"tensor_parallel_size={ranks} does not divide {state.groups} Mamba-2 groups, and there is more than one"


RULE = Rule(
    code="SF305",
    name="mamba2-groups-off-tensor-parallel",
    summary="`tensor_parallel_size` must divide the Mamba-2 groups, unless there is only one.",
    why=(
        "The heads of a group share B and C. One group is copied to every rank; several are split, and a rank that "
        "held parts of two groups would need both."
    ),
    fix="Choose a divisor of the number of groups.",
    since="0.1.0",
    says=(
        "tensor_parallel_size={} does not divide {} Mamba-2 groups",
        "If tensor parallel world size does not divide num_groups, then num_groups must equal 1",
    ),
    fields=("parallel.tensor_parallel_size",),
    example=Example("bamba-groups3", {"tensor_parallel_size": 2}, fix={"tensor_parallel_size": None}),
    check=check,
    proposals=fewer_ranks,
    breaks_runtime=True,
)
