"""Every grade is reached from both sides of its border, by differences planted in hand-made rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.oracle.base import GRADES, worst
from staticfire.harness.oracle.compare import Expected, Flips, Observed, compare, first_difference, routing_flips
from staticfire.harness.oracle.evidence import evidence
from staticfire.harness.oracle.laws import SUSPECT, Tolerance

pytestmark = pytest.mark.engine

N, V, TOP = 6, 10, 4
ALLOWED = Tolerance(max=1e-4, rms=5e-5, margin=1e-3, router=1e-2)
NO_ROUTING = np.zeros((0, 0, 0), np.int16)


def rows():
    """Token (i + 1) % V is best at position i, by 0.5; the rest follow in steps of 0.5."""
    order = [[(i + 1 + k) % V for k in range(V)] for i in range(N)]
    table = np.zeros((N, V))
    for i in range(N):
        table[i, order[i]] = -1.0 - 0.5 * np.arange(V)
    return table


def expected(table=None):
    table = rows() if table is None else table
    tokens = tuple(int(t) for t in table.argmax(-1))
    return Expected(tokens, tokens, table)


def observed(right, values=None, tokens=None, argmax=None, top=TOP):
    """What an engine with the log-probabilities `values` reports: the forced token and its own best."""
    values = right.rows if values is None else values
    best = np.argsort(-values, axis=-1, kind="stable")[:, :top]
    ids = np.concatenate([np.array(right.forced)[:, None], best], 1)
    own = values.argmax(-1) if argmax is None else np.array(argmax)
    return Observed(
        right.tokens if tokens is None else tokens, ids, np.take_along_axis(values, ids, -1), own, NO_ROUTING
    )


def first_of(result):
    assert result.first is not None
    return result.first


def test_equal_sides_are_exact():
    right = expected()
    result = compare(right, observed(right), ALLOWED)
    assert (result.grade, result.max_delta, result.rms, result.findings, result.first) == ("exact", 0.0, 0.0, (), None)


@pytest.mark.parametrize(
    ("off", "grade"),
    [
        (0.9e-4, "exact"),
        (1.1e-4, "suspect"),
        (0.9e-4 * SUSPECT, "suspect"),
        (1.1e-4 * SUSPECT, "wrong"),
        (3.0, "wrong"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_value_off(off, grade, sign):
    right = expected()
    values = right.rows.copy()
    values[4, right.tokens[4]] += sign * off if off < 1 else abs(off)
    wide = Tolerance(max=ALLOWED.max, rms=1.0, margin=10.0, router=1.0)
    result = compare(right, observed(right, values), wide)
    assert result.grade == grade
    assert result.max_delta == pytest.approx(off)
    if grade != "exact":
        assert first_of(result).position == 4


@pytest.mark.parametrize(("off", "grade"), [(0.9, "exact"), (1.1, "suspect"), (9.0, "suspect"), (11.0, "wrong")])
def test_the_root_mean_square_is_graded_though_every_value_is_within_its_bound(off, grade):
    right = expected()
    shift = off * ALLOWED.rms
    result = compare(right, observed(right, right.rows - shift), Tolerance(1.0, ALLOWED.rms, 1e-3, 1e-2))
    assert result.rms == pytest.approx(shift)
    assert result.grade == grade


def near_tie(margin, position=2):
    """The best two tokens of one position stand `margin` apart; the engine puts them the other way round."""
    table = rows()
    first = int(table[position].argmax())
    second = (first + 1) % V
    table[position, second] = table[position, first] - margin
    return expected(table), position, first, second


@pytest.mark.parametrize(
    ("margin", "grade"), [(0.9e-3, "within-noise"), (1.1e-3, "suspect"), (9e-3, "suspect"), (11e-3, "wrong")]
)
def test_an_argmax_that_changed_places_is_graded_by_the_margin(margin, grade):
    right, position, _, second = near_tie(margin)
    argmax = list(right.tokens)
    argmax[position] = second
    result = compare(right, observed(right, argmax=argmax), ALLOWED)
    assert result.grade == grade
    assert first_of(result).position == position


@pytest.mark.parametrize(
    ("margin", "grade"), [(0.9e-3, "within-noise"), (1.1e-3, "suspect"), (9e-3, "suspect"), (11e-3, "wrong")]
)
def test_a_token_that_changed_places_is_graded_by_the_margin_and_what_follows_it_is_not(margin, grade):
    right, position, _, second = near_tie(margin)
    tokens = (*right.tokens[:position], second, *([0] * (N - position - 1)))
    result = compare(right, observed(right, tokens=tokens), ALLOWED)
    assert result.grade == grade
    assert [finding.position for finding in result.findings] == [position]


def test_values_past_a_harmless_divergence_are_still_compared():
    right, position, _, second = near_tie(1e-4)
    tokens = (*right.tokens[:position], second, *([0] * (N - position - 1)))
    values = right.rows.copy()
    values[5, right.tokens[5]] -= 0.01
    result = compare(right, observed(right, values, tokens=tokens), ALLOWED)
    assert result.grade == "wrong"
    assert first_of(result).position == 5


def test_a_tie_may_fall_either_way_unless_no_margin_is_allowed():
    right, position, _, second = near_tie(1e-12)
    tokens = (*right.tokens[:position], second, *([0] * (N - position - 1)))
    strict = Tolerance(max=1e-9, rms=1e-9, margin=0.0, router=0.0)
    assert compare(right, observed(right, tokens=tokens), ALLOWED).grade == "within-noise"
    assert compare(right, observed(right, tokens=tokens), strict).grade == "wrong"


@pytest.mark.parametrize(("margin", "grade"), [(1e-3, "within-noise"), (0.0, "wrong")])
def test_a_divergence_in_a_context_without_values_counts_only_where_tokens_must_be_equal(margin, grade):
    table = rows()
    forced = tuple(int(t) for t in table.argmax(-1))
    free = (forced[0], 9, 9, 9, 9, 9)
    other = (forced[0], 9, 9, 8, 8, 8)
    right = Expected(free, forced, table)
    got = Observed(other, observed(expected()).ids, observed(expected()).logprobs, table.argmax(-1), NO_ROUTING)
    result = compare(right, got, Tolerance(1e-4, 1e-4, margin, 1.0))
    assert result.grade == grade
    assert first_of(result).position == 3


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_wrong_wherever_it_stands(value):
    right = expected()
    for column in (0, TOP):
        got = observed(right)
        got.logprobs[3, column] = value
        result = compare(right, got, Tolerance(1e9, 1e9, 1e9, 1e9))
        assert result.grade == "wrong"
        assert first_of(result).position == 3


@pytest.mark.parametrize("length", [0, 1, N - 1, N + 1])
def test_another_number_of_tokens_is_wrong(length):
    right = expected()
    tokens = (*right.tokens, 0)[:length]
    result = compare(right, observed(right, tokens=tokens), ALLOWED)
    assert result.grade == "wrong"
    assert f"{length} tokens, {N} expected" in first_of(result).message


@pytest.mark.parametrize(
    ("ids", "logprobs", "argmax"),
    [
        (np.zeros((0, 0), int), np.zeros((0, 0)), np.zeros(0, int)),
        (np.zeros((N, 0), int), np.zeros((N, 0)), np.zeros(N, int)),
        (np.zeros((N - 1, 2), int), np.zeros((N - 1, 2)), np.zeros(N - 1, int)),
        (np.zeros((N, 2), int), np.zeros((N, 3)), np.zeros(N, int)),
        (np.zeros((N, 2), int), np.zeros((N, 2)), np.zeros(N - 1, int)),
        (np.full((N, 2), V), np.zeros((N, 2)), np.zeros(N, int)),
        (np.full((N, 2), -1), np.zeros((N, 2)), np.zeros(N, int)),
    ],
    ids=["empty", "no entries", "too few rows", "ragged", "too few argmax", "id past the vocabulary", "negative id"],
)
def test_malformed_values_are_wrong(ids, logprobs, argmax):
    right = expected()
    assert compare(right, Observed(right.tokens, ids, logprobs, argmax, NO_ROUTING), ALLOWED).grade == "wrong"


def test_values_of_another_token_than_the_forced_one_are_wrong():
    right = expected()
    got = observed(right)
    got.ids[2, 0] = (got.ids[2, 0] + 3) % V
    got.logprobs[2, 0] = right.rows[2, got.ids[2, 0]]
    result = compare(right, got, ALLOWED)
    assert result.grade == "wrong"
    assert first_of(result).position == 2


def test_a_best_token_that_is_not_reported_is_found():
    right = expected()
    got = observed(right)
    swapped = np.argsort(-right.rows[1])[TOP]  # the fifth best in place of the second
    got.ids[1, 2], got.logprobs[1, 2] = swapped, right.rows[1, swapped]
    result = compare(right, got, ALLOWED)
    assert result.grade == "wrong"
    assert "missing among the best" in first_of(result).message


def test_comparing_with_nothing_is_an_error_and_no_pass():
    with pytest.raises(ValueError, match="nothing to compare"):
        compare(Expected((), (), np.zeros((0, V))), observed(expected()), ALLOWED)
    with pytest.raises(ValueError, match="nothing was compared"):
        worst([])


@pytest.mark.parametrize(
    ("gap", "grade"), [(0.9e-2, "within-noise"), (1.1e-2, "suspect"), (0.09, "suspect"), (0.11, "wrong")]
)
def test_routing_is_graded_by_the_gap(gap, grade):
    right = expected()
    assert compare(right, observed(right), ALLOWED, Flips(3, gap, 7, 1)).grade == grade
    assert compare(right, observed(right), ALLOWED, Flips(0, 0.0, 0, 0)).grade == "exact"


def test_routing_flips_by_hand():
    logits = np.array([[[3.0, 2.0, 1.0, 0.0], [3.0, 2.0, 1.9, 0.0]]])
    none = routing_flips(logits, np.array([[[1, 0], [0, 1]]]))
    assert (none.count, none.gap) == (0, 0.0)
    found = routing_flips(logits, np.array([[[0, 1], [2, 0]]]))
    assert (found.count, found.token, found.layer) == (1, 1, 0)
    assert found.gap == pytest.approx(0.1)
    both = routing_flips(logits, np.array([[[0, 3], [2, 0]]]))  # 2.0 passed over for 0.0
    assert (both.count, both.gap, both.token) == (2, 2.0, 0)


def test_an_expert_chosen_twice_is_wrong_whatever_the_margin():
    flips = routing_flips(np.zeros((1, 2, 4)), np.array([[[0, 1], [2, 2]]]))
    assert flips.gap == np.inf
    right = expected()
    assert compare(right, observed(right), Tolerance(1, 1, 1, 1e9), flips).grade == "wrong"


def test_unknown_routing_is_no_flip():
    assert routing_flips(np.array([[[0.0, 1.0]]]), np.array([[[-1]]])).count == 0
    assert routing_flips(np.zeros((0, 0, 0)), NO_ROUTING).count == 0


def test_evidence_names_the_first_differing_token_and_shows_both_sides_around_the_finding():
    right, position, first, second = near_tie(0.5)
    tokens = (*right.tokens[:position], second, *([0] * (N - position - 1)))
    got = observed(right, tokens=tokens)
    result = compare(right, got, ALLOWED)
    seen = evidence(right, got, first_of(result), lambda token: f"<{token}>")
    assert seen.differs == position
    assert seen.expected == (first, f"<{first}>")
    assert seen.observed == (second, f"<{second}>")
    assert [row["position"] for row in seen.around] == [position - 1, position, position + 1]
    shown = {entry["id"]: entry for entry in seen.around[1]["tokens"]}
    assert shown[first]["expected"] == shown[first]["observed"] == right.rows[position, first]


def test_evidence_bears_anything_an_engine_may_hand_in():
    right = expected()
    nothing = Observed((), np.zeros((0, 0), int), np.zeros((0, 0)), np.zeros(0, int), NO_ROUTING)
    seen = evidence(right, nothing, first_of(compare(right, nothing, ALLOWED)), str)
    assert (seen.differs, seen.expected, seen.observed) == (0, (right.tokens[0], str(right.tokens[0])), None)
    longer = observed(right, tokens=(*right.tokens, 1, 2))
    seen = evidence(right, longer, first_of(compare(right, longer, ALLOWED)), str)
    assert (seen.differs, seen.expected) == (None, None)


tables = st.integers(0, 2**32 - 1).map(
    lambda seed: np.log(np.random.default_rng(seed).dirichlet(np.full(V, 0.5), N) + 1e-9)
)


@given(tables)
def test_any_answer_equals_itself(table):
    right = expected(table)
    assert compare(right, observed(right), Tolerance(0.0, 0.0, 0.0, 0.0)).grade == "exact"


@given(tables, st.integers(0, N - 1), st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_a_larger_error_never_gets_a_better_grade(table, position, sizes):
    right = expected(table)
    grades = []
    for size in sorted(sizes):
        values = table.copy()
        values[position] -= size
        grades.append(GRADES.index(compare(right, observed(right, values), ALLOWED).grade))
    assert grades[0] <= grades[1]


@given(tables, st.permutations(range(TOP)))
def test_the_order_in_which_the_best_are_reported_does_not_matter(table, order):
    right = expected(table)
    got = observed(right, table - 2e-4)
    columns = [0, *(1 + i for i in order)]
    shuffled = Observed(got.tokens, got.ids[:, columns], got.logprobs[:, columns], got.argmax, NO_ROUTING)
    one, other = compare(right, got, ALLOWED), compare(right, shuffled, ALLOWED)
    assert (one.grade, one.max_delta) == (other.grade, other.max_delta)


@pytest.mark.parametrize(
    ("one", "other", "at"), [((1, 2), (1, 2), None), ((1, 2), (1, 3), 1), ((), (1,), None), ((4,), (5, 6), 0)]
)
def test_first_difference(one, other, at):
    assert first_difference(one, other) == at


def test_findings_say_what_kind_of_thing_is_off():
    right, position, _, second = near_tie(1e-4)
    argmax = list(right.tokens)
    argmax[position] = second
    tokens = (*right.tokens[:position], second, *([0] * (N - position - 1)))
    got = observed(right, tokens=tokens, argmax=argmax)
    kinds = [finding.kind for finding in compare(right, got, ALLOWED, Flips(1, 1e-3, 0, 0)).findings]
    assert sorted(kinds) == ["argmax", "routing", "token"]
