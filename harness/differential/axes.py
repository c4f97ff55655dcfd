"""Which keywords are drawn: those that both the catalogue of our rules and the engine's arguments know.

The list comes from the two, so that a keyword that either gains is drawn from then on. A keyword is drawn if its type
says which values there are: flags, names out of a list, and numbers.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from staticfire.engine.config.options import KNOWN
from staticfire.engine.config.typed import CHOICES, Typed

Kind = Literal["flag", "choice", "integer", "fraction", "sample", "option"]

SAMPLES: Final[dict[str, tuple[Any, ...]]] = {
    "speculative_config": tuple(
        {"method": method, "num_speculative_tokens": tokens, **extra}
        for tokens in (1, 2, 4)
        for method, extra in (("ngram", {"prompt_lookup_max": 4}), ("mtp", {}))
    ),
}
"""Values of keywords that hold a configuration of their own, whose type says too little to draw from."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A keyword that is drawn.

    Attributes:
        name: The keyword.
        kind: How its values are drawn; `option` is a flag that our catalogue knows and does not implement.
        choices: Its values, where they are listed.
    """

    name: str
    kind: Kind
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Axes:
    """The keywords that both sides know.

    Attributes:
        drawn: Those that are drawn, by name.
        left_out: Those that are not, since their type does not say which values there are.
    """

    drawn: tuple[Axis, ...]
    left_out: tuple[str, ...]

    def of(self, *kinds: Kind) -> tuple[Axis, ...]:
        """Those of some kinds."""
        return tuple(axis for axis in self.drawn if axis.kind in kinds)


def shared(engine_keywords: Collection[str]) -> Axes:
    """The keywords of both.

    Args:
        engine_keywords: Those of the engine's arguments.
    """
    names = sorted((set(Typed.model_fields) | set(KNOWN)) & set(engine_keywords))
    axes = {name: _axis(name) for name in names}
    return Axes(
        tuple(axis for axis in axes.values() if axis is not None),
        tuple(name for name, axis in axes.items() if axis is None),
    )


def _axis(name: str) -> Axis | None:
    if name in SAMPLES:
        return Axis(name, "sample", SAMPLES[name])
    if name not in Typed.model_fields:
        return Axis(name, "option", (True, False)) if KNOWN[name].kind == "flag" else None
    if name in CHOICES:
        return Axis(name, "choice", CHOICES[name])
    kinds = _plain_types(Typed.model_fields[name].annotation)
    if bool in kinds:
        return Axis(name, "flag", (True, False))
    if int in kinds:
        return Axis(name, "integer")
    return Axis(name, "fraction") if float in kinds else None


def _plain_types(annotation: Any) -> set[Any]:
    inner = get_args(annotation)
    return {annotation} if not inner else {kind for part in inner for kind in _plain_types(part)}
