"""SF303: a Mamba-1 channel lives on one rank."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.families.states import Mamba1State
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.rules.ranks import fewer_ranks


def check(draft: Draft) -> str | None:
    """Refuse ranks that do not divide the channels."""
    state, ranks = draft.model.state_shapes, draft.tensor_parallel_size
    if not isinstance(state, Mamba1State) or state.intermediate % ranks == 0:
        return None
    return f"tensor_parallel_size={ranks} does not divide {state.intermediate} Mamba-1 channels"


RULE = Rule(
    code="SF303",
    name="mamba1-width-off-tensor-parallel",
    summary="`tensor_parallel_size` must divide the Mamba-1 channels.",
    why=(
        "Convolution and scan run channel by channel, so ranks share channels evenly. A rounded share would drop "
        "channels silently."
    ),
    fix="Choose a divisor of the number of channels.",
    since="0.1.0",
    says=("tensor_parallel_size={} does not divide {} Mamba-1 channels",),
    fields=("parallel.tensor_parallel_size",),
    example=Example("jamba-width132", {"tensor_parallel_size": 8}, fix={"tensor_parallel_size": 4}),
    check=check,
    proposals=fewer_ranks,
    breaks_runtime=True,
)
