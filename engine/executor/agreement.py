"""Whether ranks settled the same configuration. Imports no torch."""

from collections.abc import Mapping

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.view import flatten


def disagreements(configs: Mapping[int, EngineConfig]) -> list[str]:
    """Every field that ranks hold with different values, with the ranks and the values.

    A block id that one rank has and another has not would be read outside its cache, silently: no merge of such
    values is safe once each rank believes its own.

    Args:
        configs: What each rank settled.
    """
    flat = {rank: flatten(config) for rank, config in sorted(configs.items())}
    names = dict.fromkeys(name for fields in flat.values() for name in fields)
    found = []
    for name in names:
        held: dict[object, list[int]] = {}
        for rank, fields in flat.items():
            held.setdefault(fields.get(name), []).append(rank)
        if len(held) > 1:
            sides = [f"{value!r} on rank{'s' * (len(ranks) > 1)} {_listed(ranks)}" for value, ranks in held.items()]
            found.append(f"{name} is {', '.join(sides)}")
    return found


def _listed(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks))
