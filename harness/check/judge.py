"""What the engine's answers mean for a case: refused or not, and how certain that is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from staticfire.harness.check import surroundings
from staticfire.harness.check.cases import Case, Variant
from staticfire.harness.check.frontend import unexpected
from staticfire.harness.check.messages import names, normalise, origin_file
from staticfire.harness.check.negative import Expectation
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.question import ONLY_CONFIGURATION, Answer, Desk, UnknownModel
from staticfire.harness.probe.base import BEYOND, Accepted, Crashed, Part, Rejected, Undecided, parts_of
from staticfire.harness.scan.base import Negative

NOT_READ: Final = "further keywords are not known (wrapper)"
BROKEN: Final = "the model's configuration cannot be read"
WORKER: Final = "the front end accepts, and of the worker it is not known"
NO_WORKER: Final = "the code only makes a configuration here, and the front end accepts it"


@dataclass(frozen=True, slots=True)
class Judged:
    """A case and the answers to its variants, in their order; None where there was nothing to ask."""

    case: Case
    answers: tuple[Answer | None, ...]

    @property
    def decided(self) -> bool:
        """Whether the engine accepted or refused one of its configurations, in every part that is sure to run."""
        decides = (Accepted, Rejected, Undecided) if self.front_end_only else (Accepted, Rejected)
        return any(isinstance(answer, decides) for answer in self.answers)

    @property
    def front_end_only(self) -> bool:
        """Whether nothing says that a worker is ever started here."""
        return self.case.site.form in ONLY_CONFIGURATION

    @property
    def unknown(self) -> Iterator[tuple[Part, str]]:
        """Parts of its answers that are not known, and why, each once; only parts that are sure to run."""
        found = (
            parts_of(answer).first_unknown
            for answer in self.answers
            if isinstance(answer, Accepted | Undecided | Rejected | Crashed)
        )
        for part, why in dict.fromkeys(one for one in found if one is not None):
            if part == "front end" or not self.front_end_only:
                yield part, why

    @property
    def pairs(self) -> Iterator[tuple[Variant, Answer | None]]:
        """Variants with their answers."""
        return zip(self.case.variants, self.answers, strict=True)

    def reason(self) -> str:
        """Why it was not judged; empty where it was."""
        if self.case.skipped:
            return self.case.skipped
        if self.decided:
            return ""
        failed = [answer.detail for answer in self.answers if isinstance(answer, Crashed)]
        if failed and all(detail.startswith(BEYOND) for detail in failed):
            return BEYOND
        broken = [answer.fault for answer in self.answers if isinstance(answer, UnknownModel) and answer.fault]
        if broken:
            return f"{BROKEN}: {broken[0]}"
        if failed:
            return "the engine gave no answer"
        if any(isinstance(answer, Undecided) for answer in self.answers):
            return WORKER
        if any(isinstance(answer, UnknownModel) for answer in self.answers):
            return "no configuration of the model at hand"
        return "the model is not known"


def answer(cases: Sequence[Case], desk: Desk) -> list[Judged]:
    """Ask about every case that runs, all at once."""
    asked = [case for case in cases if not case.skipped]
    desk.ask([question for case in asked for question in case.questions])
    return [
        Judged(case, tuple(_of(variant, desk) if not case.skipped else None for variant in case.variants))
        for case in cases
    ]


def _of(variant: Variant, desk: Desk) -> Answer | None:
    return None if variant.question is None else desk.one(variant.question)


def refusals(judged: Judged, desk: Desk, expectations: Mapping[Negative, Expectation]) -> Iterator[Observation]:
    """Refusals of a case, and refusals that are expected and do not come."""
    case = judged.case
    if case.negative is not None:
        # Where parts of the engine are replaced it is what replaces them that may be expected to refuse.
        if not case.patched:
            yield from _negative(judged, desk, expectations[case.negative])
        return
    causes: dict[tuple[str, str], tuple[Variant, Rejected]] = {}
    for variant, given in judged.pairs:
        if isinstance(given, Rejected) and variant.question is not None and not _beside(case, variant, given):
            cause = (origin_file(given.origin), normalise(given.message, variant.question.model))
            causes.setdefault(cause, (variant, given))
    for variant, given in causes.values():
        later = surroundings.doubt(case.site) if given.kind == "rule" else ""
        known = surroundings.registered(given.message, (typed.value for typed in variant.typed.values()))
        reasons = (
            *_doubts(judged, desk),
            *_disagreement(judged, len(causes)),
            *filter(None, [later, known, given.doubt]),
            *([NO_WORKER] if judged.front_end_only and given.phase != "front end" else []),
        )
        why = tuple(dict.fromkeys(reasons))
        yield refused(case, variant, given, why)


def _beside(case: Case, variant: Variant, given: Rejected) -> bool:
    """Whether a refusal is not of what the code does, but of what was asked in its place."""
    foreign = case.site.form == "wrapper" and any(reason == NOT_READ for reason in variant.open)
    if foreign and unexpected(given.message):
        return True  # the wrapper's own parameter
    texts = (typed.value for typed in variant.typed.values())
    return _about_open(variant, given) or surroundings.registers(case.site, given.message, texts)


def _about_open(variant: Variant, given: Rejected) -> bool:
    """Whether a refusal speaks of a keyword that is typed, but not known: the engine was asked without it."""
    return any(names(given.message, keyword.rpartition(".")[2]) for keyword in variant.left_out)


def refused(case: Case, variant: Variant, given: Rejected, why: tuple[str, ...], kind: str = "refused") -> Observation:
    """An observation of the engine's refusal."""
    return Observation(
        kind=kind,
        case=case,
        variant=variant,
        message=given.message,
        origin=given.origin,
        why=why,
        phase=given.phase,
        field=given.kind == "field",
        rules=(*given.rules, *(part.strip() for part in given.origin.split(",") if given.rules)),
    )


def _disagreement(judged: Judged, causes: int) -> Iterator[str]:
    if any(isinstance(given, Accepted) for given in judged.answers):
        yield "it depends on a value or a condition that is not known"
    if any(given is None or isinstance(given, Undecided | Crashed | UnknownModel) for given in judged.answers):
        yield "other values that it can have could not be judged"
    if causes > 1:
        yield "the refusal depends on a value or a condition that is not known"


def _doubts(judged: Judged, desk: Desk) -> Iterator[str]:
    yield from judged.case.doubts
    for variant in judged.case.variants:
        yield from variant.open
        if variant.question is not None and (doubt := desk.engine.doubt(variant.question)):
            yield doubt


def doubts(judged: Judged, desk: Desk) -> tuple[str, ...]:
    """What keeps anything from being certain here, each once."""
    return tuple(dict.fromkeys(_doubts(judged, desk)))


def _negative(judged: Judged, desk: Desk, expectation: Expectation) -> Iterator[Observation]:
    case = judged.case
    assert case.negative is not None
    expected = " or ".join(case.negative.exceptions) or "an exception"
    said = f" matching {case.negative.match!r}" if case.negative.match else ""
    # What is typed and was not asked about may be the very thing that is to be refused.
    accepts = (Accepted, Undecided) if judged.front_end_only else (Accepted,)
    accepted = [variant for variant, given in judged.pairs if isinstance(given, accepts) and not variant.left_out]
    if accepted:
        why = list(doubts(judged, desk))
        if any(isinstance(given, Undecided) for given in judged.answers):
            why.append(WORKER)
        if len(accepted) < len(judged.answers):
            why.append("it depends on a value or a condition that is not known")
        why += expectation.why()
        message = f"{expected}{said} is expected here, but the engine accepts the configuration"
        yield Observation("not-refused", case, accepted[0], message, why=tuple(dict.fromkeys(why)))
        return
    for variant, given in judged.pairs:
        if isinstance(given, Rejected) and not _about_open(variant, given) and not expectation.met_by(given.message):
            doubted = (*doubts(judged, desk), f"the test expects {expected}{said}")
            yield refused(case, variant, given, doubted, "refused-otherwise")
            return
