"""What the transformers oracle has to know about a model family. A new family is one entry."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from staticfire.harness.oracle.base import OracleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How transformers writes one family.

    Attributes:
        router: Class of its routers; they return (logits [T, E], weights [T, k], indices [T, k]). None without MoE.
        renormalize: Whether the chosen weights are divided by their sum.
        experts: Class of the module that holds all experts of a layer.
        expert_weights: Its parameters, [E, out, in].
        since: First release whose implementation is right.
        flaw: What is wrong before it.
    """

    router: str | None = None
    renormalize: bool = False
    experts: str | None = None
    expert_weights: tuple[str, ...] = ()
    since: str = "0"
    flaw: str = ""


FAMILIES: Mapping[str, Family] = {
    "jamba": Family(
        router="JambaTopKRouter",
        experts="JambaExperts",
        expert_weights=("gate_up_proj", "down_proj"),
        since="4.56",
        flaw="its Jamba and Bamba outputs are wrong before 4.56",
    ),
    "llama": Family(),
}
"""`model_type` -> family."""


def family_of(config: Mapping[str, Any], where: Path, version: str) -> Family:
    """The family of a checkpoint's `config.json`.

    Raises:
        OracleError: The family is unknown, or the installed transformers is known to be wrong about it.
    """
    model_type = config.get("model_type")
    family = FAMILIES.get(str(model_type))
    if family is None:
        near = get_close_matches(str(model_type), FAMILIES, n=1)
        raise OracleError(
            f"{where / 'config.json'}: model_type {model_type!r} has no transformers oracle; "
            f"known: {', '.join(FAMILIES)}" + (f"; did you mean {near[0]!r}?" if near else "")
        )
    if _release(version) < _release(family.since):
        raise OracleError(
            f"transformers {version} cannot judge {model_type!r}: {family.flaw}; install {family.since} or newer"
        )
    return family


def _release(version: str) -> tuple[int, ...]:
    """Leading numbers of a version: (5, 24, 0) of `5.24.0.dev0`."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
