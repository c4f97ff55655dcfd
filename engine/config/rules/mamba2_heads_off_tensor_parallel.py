"""SF304: a Mamba-2 head lives on one rank."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.families.states import Mamba2State
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.rules.ranks import fewer_ranks


def check(draft: Draft) -> str | None:
    """Refuse ranks that do not divide the Mamba-2 heads."""
    state, ranks = draft.model.state_shapes, draft.tensor_parallel_size
    if not isinstance(state, Mamba2State) or state.heads % ranks == 0:
        return None
    return f"tensor_parallel_size={ranks} does not divide {state.heads} Mamba-2 heads"


RULE = Rule(
    code="SF304",
    name="mamba2-heads-off-tensor-parallel",
    summary="`tensor_parallel_size` must divide the Mamba-2 heads.",
    why="Each rank keeps whole heads with their states. A rounded share would drop heads silently.",
    fix="Choose a divisor of the number of Mamba-2 heads.",
    since="0.1.0",
    says=(
        "tensor_parallel_size={} does not divide {} Mamba-2 heads",
        "Tensor parallel world size must divide num heads",
    ),
    fields=("parallel.tensor_parallel_size",),
    example=Example("bamba-heads6", {"tensor_parallel_size": 4}, fix={"tensor_parallel_size": 2}),
    check=check,
    proposals=fewer_ranks,
    breaks_runtime=True,
)
