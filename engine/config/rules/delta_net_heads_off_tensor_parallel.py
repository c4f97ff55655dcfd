"""SF306: a delta-net head lives on one rank."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.families.states import GatedDeltaNetState
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.rules.ranks import fewer_ranks


def check(draft: Draft) -> str | None:
    """Refuse ranks that do not divide key and value heads."""
    state, ranks = draft.model.state_shapes, draft.tensor_parallel_size
    if not isinstance(state, GatedDeltaNetState):
        return None
    if state.key_heads % ranks == 0 and state.value_heads % ranks == 0:
        return None
    return (
        f"tensor_parallel_size={ranks} does not divide {state.key_heads} key heads and "
        f"{state.value_heads} value heads of the gated delta net"
    )


RULE = Rule(
    code="SF306",
    name="delta-net-heads-off-tensor-parallel",
    summary="`tensor_parallel_size` must divide the delta net's key heads and value heads.",
    why="Each rank keeps whole heads with their states; value heads stay with the key head that they share.",
    fix="Choose a common divisor of both numbers of heads.",
    since="0.1.0",
    says=("tensor_parallel_size={} does not divide {} key heads and {} value heads",),
    fields=("parallel.tensor_parallel_size",),
    example=Example("qwen3-next-keys3", {"tensor_parallel_size": 2}, fix={"tensor_parallel_size": None}),
    check=check,
    proposals=fewer_ranks,
    breaks_runtime=True,
)
