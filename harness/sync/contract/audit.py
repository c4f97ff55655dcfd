"""Try every property on every field, keep the smallest counterexample of each, and stop in time."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample, Unsatisfiable

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.sync.contract.base import (
    About,
    Counterexample,
    Field,
    Finding,
    Refused,
    Report,
    Subject,
    SubjectDiedError,
    Tried,
)
from staticfire.harness.sync.contract.case import Case, Judged, shown
from staticfire.harness.sync.contract.learn import AS_TRIED, UNREAD, Learnt, learn
from staticfire.harness.sync.contract.properties import MERGE, PROPERTIES, Property

EXAMPLES: Final = 50
SECONDS: Final = 300.0
MOST_DEATHS: Final = 3
"""An engine's process that dies this often is not asked any more."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What the user accepts: a property of a field, and why."""

    rule: str
    field: str
    reason: str


def accepted(texts: Iterable[str]) -> list[Accepted]:
    """Read `PROPERTY:FIELD=REASON`.

    Raises:
        InputError: It is written otherwise, names no property, or gives no reason.
    """
    found, faults = [], []
    names = [one.name for one in PROPERTIES]
    for text in texts:
        what, _, reason = text.partition("=")
        rule, _, name = what.partition(":")
        if not reason.strip() or not name:
            faults.append(f"--accept {text!r}: write PROPERTY:FIELD=REASON; a reason is not optional.")
        elif rule not in names:
            said = nearest(rule, names) or f" Properties: {', '.join(names)}."
            faults.append(f"--accept {text!r}: there is no property {rule!r}.{said}")
        else:
            found.append(Accepted(rule, name, reason.strip()))
    if faults:
        raise InputError("\n".join(faults))
    return found


def audit(
    subject: Subject,
    *,
    examples: int = EXAMPLES,
    seconds: float = SECONDS,
    accept: Sequence[Accepted] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Hold an engine's response to the properties.

    Args:
        subject: The engine.
        examples: How many examples of each property and field.
        seconds: When to stop; what was not tried until then is said.
        accept: What is no finding.
        say: Told how far it is.

    Raises:
        InputError: The engine refuses or dies before anything is tried, or `accept` names a field that is none.
    """
    _known(subject, accept)
    if subject.about.misdeclared:
        return _misdeclared(subject.about)
    deadline = time.monotonic() + seconds
    try:
        learnt = learn(subject)
    except SubjectDiedError as error:
        raise InputError(f"{subject.about.engine}: {error}") from error
    except ValueError as error:
        raise InputError(
            f"{subject.about.engine}: {subject.about.applies} ({subject.about.applied_at}) is beyond this contract: it "
            f"refuses what an engine says as a rule, on a front end that was not started: {error}"
        ) from error
    tried, trial = [], _Trial(subject, learnt, examples, deadline)
    findings = [_accept(finding, accept) for finding in _merged_wrongly(learnt)]
    for rule in PROPERTIES:
        say(f"{rule.name}: {rule.statement}")
        done, found = trial.run(rule)
        tried.append(done)
        findings += [_accept(finding, accept) for finding in found]
    return Report(
        about=subject.about,
        merges=learnt.merges,
        targets=learnt.targets,
        tried=tuple(tried),
        findings=tuple(findings),
        notes=(*_notes(learnt), *_idle(accept, findings)),
    )


def _misdeclared(about: About) -> Report:
    """Fields that are merged by another rule than their merged value means; what such a merge makes is not tried."""
    findings = [
        Finding(
            MERGE,
            name,
            Counterexample((), {name: declared}, {name: meant}, "what several engines' values together mean"),
            about.line(name),
        )
        for name, (declared, meant) in about.misdeclared.items()
    ]
    note = "nothing else was tried: what the response declares is wrong"
    return Report(about, {}, {}, (), tuple(findings), (note,))


def _merged_wrongly(learnt: Learnt) -> list[Finding]:
    """Fields of which two engines' values become something else, as tried, than the merged value means."""
    about = learnt.about
    return [
        Finding(
            MERGE,
            name,
            Counterexample((), {name: merge}, {name: AS_TRIED[about.meanings[name]]}, "what the value means"),
            about.line(name),
        )
        for name, merge in learnt.merges.items()
        if name in about.meanings and merge != AS_TRIED[about.meanings[name]]
    ]


def _known(subject: Subject, accept: Sequence[Accepted]) -> None:
    names = [one.name for one in subject.about.fields]
    faults = [
        f"--accept {one.rule}:{one.field}: {subject.about.response} has no such field.{nearest(one.field, names)}"
        for one in accept
        if one.field not in names
    ]
    if faults:
        raise InputError("\n".join(faults))


@dataclass
class _Search:
    """The search for one counterexample, and what was met on the way."""

    judge: Callable[[Case], Judged]
    deadline: float
    tried: int = 0
    faults: dict[int, Counterexample] = field(default_factory=dict)
    refused: str | None = None
    declared: str | None = None
    late: bool = False
    died: str | None = None
    last: Case | None = None

    def breaks(self, case: Case) -> bool:
        """Whether the property does not hold for a case; nothing breaks it any more when there is no time left."""
        if self.died is not None or self.late:
            return False
        if time.monotonic() >= self.deadline:
            self.late = True
            return False
        self.tried += 1
        try:
            judged = self.judge(case)
        except SubjectDiedError as error:
            self.died, self.last = str(error), case
            return False
        if judged.refused is not None and (self.refused is None or len(judged.refused) < len(self.refused)):
            self.refused = judged.refused
        self.declared = self.declared or judged.declared
        if judged.fault is not None:
            self.faults[id(case)] = judged.fault
        return judged.fault is not None


class _Trial:
    """All properties of one engine."""

    def __init__(self, subject: Subject, learnt: Learnt, examples: int, deadline: float) -> None:
        self._subject, self._learnt, self._deadline, self._deaths = subject, learnt, deadline, 0
        self._settings = settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )

    def run(self, rule: Property) -> tuple[Tried, list[Finding]]:
        """Try one property."""
        eligible = rule.eligible(self._learnt)
        refused: dict[str, str] = {}
        declared, untried, findings, examples = {}, {}, [], 0
        for one in eligible:
            search, smallest, why = self._search(rule, one)
            examples += search.tried
            if why is not None:
                untried[one.name] = why
            if search.refused is not None:
                refused[one.name] = search.refused
            if search.declared is not None:
                declared[one.name] = search.declared
            if smallest is not None:
                name = None if rule.whole else one.name
                findings.append(Finding(rule.name, name, smallest, self._learnt.about.line(name)))
        done = Tried(
            rule.name, rule.statement, examples, len(eligible), rule.whole, _refusals(refused), declared, untried
        )
        return done, findings

    def _search(self, rule: Property, one: Field) -> tuple[_Search, Counterexample | None, str | None]:
        search = _Search(lambda case: rule.judge(self._subject, self._learnt, one.name, case), self._deadline)
        if self._deaths >= MOST_DEATHS:
            return search, None, "the engine's process died too often"
        smallest, why = None, None
        try:
            case = find(rule.cases(self._learnt, one), search.breaks, settings=self._settings)
        except NoSuchExample:
            pass
        except Unsatisfiable:
            why = None if search.late or search.died else "its type has no two values"
        else:
            smallest = search.faults.get(id(case)) or rule.judge(self._subject, self._learnt, one.name, case).fault
        if search.died is not None and search.last is not None:
            self._deaths += 1
            said = shown(one.name, search.last) or ((0, {**search.last.more, **search.last.extra}),)
            smallest = Counterexample(said, {}, {}, "", search.last.typed, error=f"{search.died} (not made smaller)")
        return search, smallest, "out of time" if search.late else why


def _refusals(refused: Mapping[str, str]) -> tuple[Refused, ...]:
    """Field -> error, by kind of error."""
    kinds: dict[str, list[str]] = {}
    for name, error in refused.items():
        kinds.setdefault(error.partition(":")[0], []).append(name)
    return tuple(Refused(min((refused[name] for name in names), key=len), tuple(names)) for names in kinds.values())


def _accept(finding: Finding, accept: Sequence[Accepted]) -> Finding:
    for one in accept:
        if (one.rule, one.field) == (finding.rule, finding.field):
            return Finding(finding.rule, finding.field, finding.example, finding.where, one.reason)
    return finding


def _idle(accept: Sequence[Accepted], findings: Sequence[Finding]) -> list[str]:
    found = {(finding.rule, finding.field) for finding in findings}
    return [
        f"--accept {one.rule}:{one.field} accepts nothing: the property holds for that field"
        for one in accept
        if (one.rule, one.field) not in found
    ]


def _notes(learnt: Learnt) -> list[str]:
    unread = _with(learnt.merges, UNREAD)
    notes = []
    if unread:
        notes.append(
            f"{learnt.about.applies} takes nothing over from {', '.join(unread)}, so no property but the round trip "
            "speaks of them: other readers of the response may use them"
        )
    if learnt.about.key is None:
        notes.append(
            "no field tells the front end which engine answers, so it cannot know an engine that answers twice"
        )
    return notes


def _with(merges: Mapping[str, str], merge: str) -> list[str]:
    return [name for name, found in merges.items() if found == merge]
