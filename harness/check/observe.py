"""What is to be said about one case, before cases are grouped."""

from dataclasses import dataclass

from staticfire.harness.check.base import Repair
from staticfire.harness.check.cases import Case, Variant
from staticfire.harness.check.messages import normalise, origin_file


@dataclass(frozen=True, slots=True)
class Observation:
    """One fact about one case.

    Attributes:
        kind: Name of a `Kind`.
        case: Where.
        variant: The variant it was seen on; the first of them if there are several.
        message: The engine's words, or ours.
        origin: Where in the engine it arises, empty where that is not known.
        why: What keeps it from being certain; empty where it is.
        phase: `front end`, `worker`, `capacity`, or empty.
        rules: Codes and names of broken rules.
        field: Whether one keyword or value alone is refused, and not values that clash.
        repairs: Verified repairs, best first.
        keyword: What it is about, where it is about one keyword.
        told: How the values that clash came to be, where that is not for the engine to say.
    """

    kind: str
    case: Case
    variant: Variant
    message: str
    origin: str = ""
    why: tuple[str, ...] = ()
    phase: str = ""
    rules: tuple[str, ...] = ()
    field: bool = False
    repairs: tuple[Repair, ...] = ()
    keyword: str = ""
    told: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The model it was seen on."""
        return self.variant.question.model if self.variant.question else ""

    @property
    def cause(self) -> tuple[str, str, str, str]:
        """Equal for the same root cause."""
        return (self.kind, origin_file(self.origin), normalise(self.message, self.model), self.keyword)

    @property
    def subject(self) -> str:
        """Equal where the same repairs come into question: the question, the form, and who typed what."""
        at_call = sorted(name for name, typed in self.variant.typed.items() if typed.layer == "call")
        key = self.variant.question.key if self.variant.question else ""
        return f"{key} {self.case.site.form} {' '.join(at_call)}"

    @property
    def order(self) -> tuple[object, ...]:
        """Orders observations by place."""
        return (*self.case.key, self.variant.question.key if self.variant.question else "", self.message)
