"""The properties. Each has a name, a sentence, the cases it is tried on, and a judge of one case."""

from abc import ABC, abstractmethod
from itertools import permutations
from typing import ClassVar, Final

from hypothesis import strategies as st

from staticfire.harness.sync.contract.base import LEFT_OUT, Counterexample, Field, Run, Subject
from staticfire.harness.sync.contract.case import (
    HOLDS,
    Case,
    Judged,
    changed,
    counter,
    grown,
    more,
    shown,
    typed,
    with_error,
)
from staticfire.harness.sync.contract.draw import allows_none, drawable, values
from staticfire.harness.sync.contract.learn import Learnt

MERGE: Final = "merge"
MERGE_WHY: Final = "The front end makes something else of several engines' values than everyone takes it for."
BY_RULE: Final = "the same whichever engine answers first: a value only while every engine says it"


class Property(ABC):
    """A property of one field at a time."""

    name: ClassVar[str]
    statement: ClassVar[str]
    why: ClassVar[str]
    whole: ClassVar[bool] = False
    """Whether it is one of the whole response, and of no field."""

    def eligible(self, learnt: Learnt) -> list[Field]:
        """The fields it can be tried on."""
        return [
            one
            for one in learnt.about.fields
            if one.name != learnt.about.key and drawable(one.type) and learnt.targets[one.name]
        ]

    @abstractmethod
    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:
        """What it is tried on."""

    @abstractmethod
    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:
        """Try one case."""


class RoundTrips(Property):
    """What is sent is what is read."""

    name = "round-trip"
    statement = "what an engine encodes is what the front end decodes"
    why = "The front end works by another value than the engine meant, and neither can see it."

    def eligible(self, learnt: Learnt) -> list[Field]:
        """Every field."""
        return [one for one in learnt.about.fields if drawable(one.type)]

    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:
        """One engine that says anything."""
        return st.builds(Case, st.tuples(values(one.type, one.base)), more(learnt, one))

    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:
        """Send it and read it."""
        message = learnt.message(0, {**case.more, name: case.said[0]})
        done = subject.round_trip(message)
        if name not in done.lost:
            return Judged(refused=done.error)
        return Judged(Counterexample(shown(name, case), {}, {}, "it is decoded as something else"))


class MissingField(Property):
    """An older peer."""

    name = "missing-field"
    statement = "a field that an older engine leaves out changes nothing, or is refused"
    why = (
        "An engine of an older version says nothing about this, and the front end takes that for an answer: what was "
        "typed, or settled by another engine, is gone with no error."
    )

    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:
        """An older engine alone, after a user who may have typed a value; or one after a newer engine."""
        alone, after = st.just((LEFT_OUT,)), st.tuples(values(one.type, one.base, none=False), st.just(LEFT_OUT))
        return st.builds(Case, st.one_of(alone, after), more(learnt, one), typed(learnt, one))

    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:
        """Compare with the front end before that engine answers, and with the other order: a rule is no accident."""
        messages = [learnt.message(index, {**case.more, name: said}) for index, said in enumerate(case.said)]
        del messages[-1][name]
        forth, back = subject.deliver([Run(messages, case.typed), Run(messages[::-1], case.typed)])
        if forth.error is not None or back.error is not None:
            return Judged(refused=forth.error or back.error)
        before = forth.states[-2]
        paths = [
            path for path in changed(learnt, name, forth.end, before) if not grown(learnt, path, before, forth.end)
        ]
        if not paths:
            return HOLDS
        unknown = all(learnt.held(forth.end, path) is None for path in paths)
        if len(messages) > 1 and unknown and not changed(learnt, name, forth.end, back.end):
            return Judged(declared=BY_RULE)
        return Judged(counter(learnt, name, case, forth.end, before, paths, "before that engine answers"))


class UnknownField(Property):
    """A newer peer."""

    name = "unknown-field"
    statement = "a field that only a newer engine knows changes nothing, or is refused"
    why = "An engine of a newer version changes what this front end holds, by a field that it does not declare."
    whole = True

    def eligible(self, learnt: Learnt) -> list[Field]:
        """The response as a whole, for which its first field stands."""
        return list(learnt.about.fields[:1])

    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:  # noqa: ARG002 -- of the whole
        """Names that are not declared, with any value that the wire allows."""
        known = {each.name for each in learnt.about.fields}
        names = st.text(min_size=1, max_size=20).filter(lambda name: name not in known)
        anything = st.recursive(
            st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats(allow_nan=False) | st.text(max_size=9),
            lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=9), below, max_size=3),
            max_leaves=6,
        )
        return st.builds(
            Case, st.just(()), more(learnt, None), extra=st.dictionaries(names, anything, min_size=1, max_size=3)
        )

    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:  # noqa: ARG002
        """Compare with the same response without them."""
        message = learnt.message(0, case.more)
        with_extra, without = subject.deliver([Run([{**message, **case.extra}]), Run([message])])
        if with_extra.error is not None and without.error is None:
            return Judged(refused=with_extra.error)
        paths = sorted({*with_extra.end, *without.end})
        differ = [path for path in paths if learnt.held(with_extra.end, path) != learnt.held(without.end, path)]
        if not differ:
            return HOLDS
        return Judged(
            Counterexample(
                ((0, {**case.more, **case.extra}),),
                {path: learnt.held(with_extra.end, path) for path in differ},
                {path: learnt.held(without.end, path) for path in differ},
                "without that field",
            )
        )


class ArrivalOrder(Property):
    """Whoever is first."""

    name = "arrival-order"
    statement = "the order in which engines answer changes nothing"
    why = "Which engine answers first is a race: two starts of the same deployment end with different values."

    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:
        """Two or three engines."""
        any_value = values(one.type, one.base)
        said = st.one_of(st.tuples(any_value, any_value), st.tuples(any_value, any_value, any_value))
        return st.builds(Case, said, more(learnt, one), typed(learnt, one))

    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:
        """Deliver in every order."""
        orders = list(permutations(range(len(case.said))))
        done = subject.deliver(
            [
                Run([learnt.message(index, {**case.more, name: case.said[index]}) for index in order], case.typed)
                for order in orders
            ]
        )
        errors = [one.error for one in done]
        if all(error is not None for error in errors):
            return Judged(refused=errors[0])
        first = done[0]
        for order, other in zip(orders[1:], done[1:], strict=True):
            when = f"when engine {' and then engine '.join(map(str, order))} answers"
            if (other.error is None) != (first.error is None):
                error = other.error or first.error
                example = counter(learnt, name, case, first.end, other.end, list(learnt.targets[name]), when)
                return Judged(with_error(example, error))
            paths = changed(learnt, name, first.end, other.end)
            if paths and first.error is None:
                return Judged(counter(learnt, name, case, first.end, other.end, paths, when))
        return HOLDS


class Redelivery(Property):
    """Once more."""

    name = "re-delivery"
    statement = "an engine that answers again changes nothing"
    why = (
        "An engine that answers again, as one that left and came back, counts once more: the front end believes in "
        "something that no engine has."
    )

    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:
        """One engine, or one of two."""
        return st.builds(Case, st.tuples(values(one.type, one.base)), more(learnt, one), typed(learnt, one))

    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:
        """Compare once with twice."""
        message = learnt.message(0, {**case.more, name: case.said[0]})
        twice, once = subject.deliver([Run([message, message], case.typed), Run([message], case.typed)])
        if once.error is not None or twice.error is not None:
            return Judged(refused=once.error or twice.error)
        paths = changed(learnt, name, twice.end, once.end)
        if not paths:
            return HOLDS
        again = Case(said=(*case.said, *case.said), more=case.more, typed=case.typed)
        return Judged(counter(learnt, name, again, twice.end, once.end, paths, "delivered once", engines=(0, 0)))


class NoneAfterValue(Property):
    """An engine that has nothing to say."""

    name = "none-after-value"
    statement = "an engine's None takes away no other engine's value"
    why = (
        "The last engine to answer has nothing to say about this, and with that erases what another one settled and "
        "works by: whoever reads the front end's configuration finds None."
    )

    def eligible(self, learnt: Learnt) -> list[Field]:
        """Fields that may be None."""
        return [one for one in super().eligible(learnt) if allows_none(one.type)]

    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:
        """A value, then None."""
        said = st.tuples(values(one.type, none=False), st.none())
        return st.builds(Case, said, more(learnt, one), typed(learnt, one))

    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:
        """Compare with the value alone, and with None first: a rule that both orders follow is no accident."""
        value, nothing = (learnt.message(index, {**case.more, name: said}) for index, said in enumerate(case.said))
        forth, back = subject.deliver([Run([value, nothing], case.typed), Run([nothing, value], case.typed)])
        if forth.error is not None or back.error is not None:
            return Judged(refused=forth.error or back.error)
        lost = [
            path for path in changed(learnt, name, forth.end, forth.states[1]) if learnt.held(forth.end, path) is None
        ]
        erased = [path for path in lost if learnt.held(back.end, path) is not None]
        if not lost:
            return HOLDS
        if not erased:
            return Judged(declared=BY_RULE)
        return Judged(counter(learnt, name, case, forth.end, back.end, erased, "when the None comes first"))


class Disagreement(Property):
    """Two engines that settled different values."""

    name = "disagreement"
    statement = "where two engines disagree it is refused, combined or kept of both: no value vanishes unnoticed"
    why = (
        "The engines run with different values, the front end holds one of them as if it were everybody's, and nobody "
        "is told."
    )

    def eligible(self, learnt: Learnt) -> list[Field]:
        """Also fields that are only compared."""
        return [one for one in learnt.about.fields if one.name != learnt.about.key and drawable(one.type)]

    def cases(self, learnt: Learnt, one: Field) -> st.SearchStrategy[Case]:
        """Two values that differ."""
        some = values(one.type, one.base, none=False)
        return st.builds(Case, st.tuples(some, some).filter(lambda pair: pair[0] != pair[1]), more(learnt, one))

    def judge(self, subject: Subject, learnt: Learnt, name: str, case: Case) -> Judged:
        """Two orders that end differently: what is left is one engine's value, and the other's is gone."""
        one, other = (learnt.message(index, {**case.more, name: said}) for index, said in enumerate(case.said))
        forth, back = subject.deliver([Run([one, other]), Run([other, one])])
        if forth.error is not None or back.error is not None:
            return Judged(refused=forth.error or back.error)
        paths = changed(learnt, name, forth.end, back.end)
        if not paths:
            return HOLDS
        return Judged(counter(learnt, name, case, forth.end, back.end, paths, "in the other order"))


PROPERTIES: Final[tuple[Property, ...]] = (
    RoundTrips(), MissingField(), UnknownField(), ArrivalOrder(), Redelivery(), NoneAfterValue(), Disagreement(),
)  # fmt: skip
