"""What a scan shows about keywords: the values that are typed for them, and the defaults that wrappers give them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

from staticfire.harness.check.cases import Case
from staticfire.harness.check.question import Question

MAX_VALUES: Final = 12
MAX_NUMBER: Final = 2**63


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Keywords as the scanned code uses them.

    Attributes:
        values: Keyword -> simple values typed for it anywhere, most frequent first.
        defaults: (form, keyword) -> the value that the wrapper of that form gives when nothing is typed.
        names: Gives every keyword that the engine knows where a question is asked; none where that is not known.
    """

    values: Mapping[str, tuple[Any, ...]]
    defaults: Mapping[tuple[str, str], Any]
    names: Callable[[Question], AbstractSet[str]] = field(default=lambda _: frozenset(), compare=False)

    def flags(self) -> tuple[str, ...]:
        """Keywords that are typed as booleans, sorted."""
        return tuple(sorted(name for name, values in self.values.items() if any(isinstance(v, bool) for v in values)))


def vocabulary(
    cases: Iterable[Case], names: Callable[[Question], AbstractSet[str]] = lambda _: frozenset()
) -> Vocabulary:
    """Read keywords off the cases of a scan.

    Args:
        cases: Of a scan.
        names: As in `Vocabulary`.
    """
    seen: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    plain: dict[tuple[str, str, str], Any] = {}
    defaults: defaultdict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for case in cases:
        for variant in case.variants:
            for name, typed in variant.typed.items():
                if not _proposable(typed.value):
                    continue
                label = (type(typed.value).__name__, repr(typed.value))
                plain[(name, *label)] = typed.value
                seen[name][label] += 1
                if typed.layer == "wrapper":
                    defaults[case.site.form, name][label] += 1
    return Vocabulary(
        values={
            name: tuple(plain[(name, *label)] for label in _ranked(labels)[:MAX_VALUES])
            for name, labels in seen.items()
        },
        defaults={(form, name): plain[(name, *_ranked(labels)[0])] for (form, name), labels in defaults.items()},
        names=names,
    )


def _proposable(value: Any) -> bool:
    """Whether somebody could be told to type it: no container, and no number beyond every size."""
    if isinstance(value, int | float):
        return abs(value) < MAX_NUMBER
    return isinstance(value, str)


def _ranked(labels: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(labels, key=lambda label: (-labels[label], label))
