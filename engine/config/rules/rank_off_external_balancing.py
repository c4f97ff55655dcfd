"""SF312: a rank and external balancing go together."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse one without the other."""
    rank, external = draft.data_parallel_rank, draft.data_parallel_external_lb
    if external and rank is None:
        return "data_parallel_external_lb=True, but no data_parallel_rank says which engine this front end serves"
    if not external and rank is not None and draft.release.rank_needs_external_balancing:
        return f"data_parallel_rank={rank} with data_parallel_external_lb=False: this front end would serve all engines"
    return None


RULE = Rule(
    code="SF312",
    name="rank-off-external-balancing",
    summary="`data_parallel_rank` and `data_parallel_external_lb` go together.",
    why=(
        "Under external balancing each rank has a front end of its own and must know which one it is; under internal "
        "balancing one front end serves every engine and has no rank."
    ),
    fix="Type `data_parallel_rank` alone for external balancing, neither of the two for internal balancing.",
    since="0.1.0",
    says=(
        "data_parallel_external_lb=True, but no data_parallel_rank says",
        "data_parallel_rank={} with data_parallel_external_lb=False",
        "`--data-parallel-external-lb` requires a data-parallel rank",
    ),
    fields=("parallel.data_parallel_external_lb", "parallel.data_parallel_rank"),
    example=Example("llama", {"data_parallel_external_lb": True}, fix={"data_parallel_external_lb": None}),
    check=check,
)
