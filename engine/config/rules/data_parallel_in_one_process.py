"""SF310: several engines need several processes."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse data parallelism where processes are turned off."""
    if draft.data_parallel_size == 1 or draft.enable_multiprocessing:
        return None
    return f"data_parallel_size={draft.data_parallel_size} engines with enable_multiprocessing=False"


RULE = Rule(
    code="SF310",
    name="data-parallel-in-one-process",
    summary="`data_parallel_size` above 1 needs `enable_multiprocessing`.",
    why="Every data-parallel engine steps on its own. In one process they would take turns and gain nothing.",
    fix="Leave `enable_multiprocessing` out.",
    since="0.1.0",
    says=("data_parallel_size={} engines with enable_multiprocessing=False",),
    fields=("parallel.data_parallel_size", "parallel.enable_multiprocessing"),
    example=Example(
        "llama",
        {"data_parallel_size": 2, "enable_multiprocessing": False},
        fix={"enable_multiprocessing": None},
    ),
    check=check,
    holds=lambda release: release.engines_need_processes,
)
