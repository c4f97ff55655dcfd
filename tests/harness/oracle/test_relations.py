"""Every relation passes where its condition occurred and calls itself vacuous where it did not."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from settled_config import settled_config
from staticfire.engine.outputs import CompletionOutput, RequestOutput, RequestStats
from staticfire.harness.matrix.workload import RELATION_NAMES
from staticfire.harness.oracle.compare import Observed
from staticfire.harness.oracle.laws import Tolerance
from staticfire.harness.oracle.ledger import Ledger, Scheduled
from staticfire.harness.oracle.plan import Planned
from staticfire.harness.oracle.relations import eviction as eviction_module
from staticfire.harness.oracle.relations import preemption as preemption_module
from staticfire.harness.oracle.relations import stops as stops_module
from staticfire.harness.oracle.relations.aborts import Aborts
from staticfire.harness.oracle.relations.admission_order import AdmissionOrder
from staticfire.harness.oracle.relations.base import Answered, Trial
from staticfire.harness.oracle.relations.chunk_split import ChunkSplit, prefill_chunks
from staticfire.harness.oracle.relations.eviction import Eviction
from staticfire.harness.oracle.relations.later_block import LaterBlock
from staticfire.harness.oracle.relations.preemption import Foretold, Preemption, cut_short, rehearse, squeezed
from staticfire.harness.oracle.relations.prefix_hit import PrefixHit
from staticfire.harness.oracle.relations.prompt_logprobs import PromptLogprobs
from staticfire.harness.oracle.relations.registry import RELATIONS
from staticfire.harness.oracle.relations.reused_id import ReusedId
from staticfire.harness.oracle.relations.sampling import Sampling
from staticfire.harness.oracle.relations.spans import BlockBoundaries
from staticfire.harness.oracle.relations.state_reuse import StateReuse
from staticfire.harness.oracle.relations.stops import Stops
from staticfire.harness.oracle.subject import Answer, Run, params

pytestmark = pytest.mark.engine

EMPTY = Observed((), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0, 0)))


def planned(length, family="block", first=0):
    return Planned(f"p{length}", tuple(range(first, first + length)), family)


def answered(length, family="block", **stats):
    return Answered("cold", planned(length, family), Answer(EMPTY, stats_of(**stats), False))


def stats_of(**stats):
    return RequestStats(**stats)


class Scripted:
    """Stands for the engine under test: generates ones, with the stats it was given, used up call by call."""

    def __init__(self, settled, stats=(), ledger=None):
        self.config = settled
        self.stats = list(stats)
        self.ledger = ledger
        self.llm = SimpleNamespace(
            abort=lambda ids: None,
            client=SimpleNamespace(
                stats=lambda: {0: SimpleNamespace(num_running=0, num_waiting=0, kv_cache_usage=0.0)}
            ),
        )

    def run(self, prompts, sampling, *, request_ids=None, after_step=None):
        given = sampling if isinstance(sampling, list) else [sampling] * len(prompts)
        ids = request_ids or [str(i) for i in range(len(prompts))]
        return [self.ended(*parts) for parts in zip(prompts, given, ids, strict=True)]

    def ended(self, prompt, params, request_id):
        stats = self.stats.pop(0) if self.stats else stats_of(chunks=[(0, len(prompt))])
        completion = CompletionOutput([1] * params.max_tokens, "", "length", [])
        return Run(RequestOutput(request_id, None, list(prompt), [completion], stats), np.zeros((0, 0, 0)))

    def completed(self, prompts, free, continuations, max_tokens, top=8):
        return [Answer(EMPTY, run.stats, False) for run in free]


class Flat:
    """Stands for the oracle: every token is as likely as any other, the first a little more."""

    def score(self, tokens, last, routing):
        rows = np.full((last, 512), -np.log(512))
        rows[:, 1] += 1e-3
        return rows


def trial(settled, cold, again=(), kept_back=(), ledger=None):
    continuations = {prompt.tokens: (1,) * 16 for prompt in [*(item.prompt for item in cold), *kept_back]}
    subject: Any = Scripted(settled, again, ledger)
    allowed = Tolerance(1e-4, 1e-5, 1e-5, 1e-5)
    return Trial(Path("checkpoint"), {}, subject, cold, continuations, 16, kept_back, Flat(), allowed)


def test_spans():
    settled = settled_config(block_size=16)
    relation = BlockBoundaries()
    assert relation.applies(settled)
    assert relation.check(trial(settled, [answered(48), answered(3)])).vacuous is None
    assert "3 blocks of 16 are 48" in str(relation.check(trial(settled, [answered(47)])).vacuous)


@pytest.mark.parametrize(
    ("chunks", "count"),
    [
        ([(0, 10)], 1),
        ([(0, 10), (10, 1), (11, 1)], 1),
        ([(0, 4), (4, 6), (10, 1)], 2),
        ([(0, 4), (4, 4), (8, 2), (10, 1)], 3),
        ([(0, 10), (0, 4), (4, 9)], 1),
        ([(8, 2), (10, 1)], 1),
    ],
    ids=["whole", "decodes", "two", "three", "recomputed in pieces after a preemption", "after a hit"],
)
def test_prefill_chunks(chunks, count):
    assert prefill_chunks(answered(10, chunks=chunks)) == count


def test_chunk_split():
    relation = ChunkSplit()
    settled = settled_config(max_num_batched_tokens=64)
    assert relation.applies(settled)
    assert not relation.applies(settled_config(max_num_batched_tokens=2048))
    assert not relation.applies(replace(settled, scheduler=replace(settled.scheduler, enable_chunked_prefill=False)))
    split = relation.check(trial(settled, [answered(10, chunks=[(0, 5), (5, 5)]), answered(3, chunks=[(0, 3)])]))
    assert (split.vacuous, split.broken) == (None, [])
    assert split.figures == {"prompts_split": 1, "longest_chunk": 5}
    assert "no prompt was split" in str(relation.check(trial(settled, [answered(10, chunks=[(0, 10)])])).vacuous)


def test_a_chunk_longer_than_its_limit_is_broken():
    settled = settled_config(max_num_batched_tokens=64, long_prefill_token_threshold=40)
    outcome = ChunkSplit().check(trial(settled, [answered(90, chunks=[(0, 41), (41, 40), (81, 9)])]))
    assert outcome.broken == [
        "a chunk of 41 tokens was computed: long_prefill_token_threshold=40, max_num_batched_tokens=64"
    ]


COLD = [answered(16), answered(17), answered(49), answered(200, family="text"), answered(33, family="chunk")]


def hits(*cached, restored=1):
    return [stats_of(num_cached_tokens=count, restored_states=restored) for count in cached]


def test_prefix_hit():
    relation = PrefixHit()
    settled = settled_config(block_size=16)
    assert relation.applies(settled)
    assert not relation.applies(settled_config(enable_prefix_caching=False))
    good = relation.check(trial(settled, COLD, hits(0, 16, 48, 192)))
    assert good.vacuous is None
    assert good.figures == {"cached_tokens": 256, "restored_states": 4}
    assert [item.prompt.name for item in good.answered] == ["p16", "p17", "p49", "p200"]


@pytest.mark.parametrize(
    ("again", "cold", "reason"),
    [
        (hits(0, 0, 48, 192), COLD, "fewer cached tokens the second time than the last boundary has: p17 (0 of 16)"),
        (hits(0, 0, 0, 192), COLD, "p17 (0 of 16), p49 (0 of 48)"),
        (hits(0, 16, 32, 0), COLD, "p49 (32 of 48), p200 (0 of 192)"),
        (hits(0, 16, 48, 192, restored=0), COLD, "no recurrent state was restored"),
        (hits(0), [answered(16)], "no prompt is longer than a block"),
    ],
)
def test_a_prefix_hit_that_did_not_happen(again, cold, reason):
    assert reason in str(PrefixHit().check(trial(settled_config(block_size=16), cold, again)).vacuous)


def test_a_dense_model_has_no_state_to_restore():
    settled = settled_config("llama-tiny", block_size=16)
    assert PrefixHit().check(trial(settled, COLD, hits(0, 16, 48, 192, restored=0))).vacuous is None


SEQUENCES = [Foretold(tuple(range(i, i + 47)), tuple(range(16)), params(16)) for i in (0, 100, 200, 300)]


def preemptions(requests):
    return sum(request.num_preemptions for request in requests)


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("model", ["jamba-tiny", "llama-tiny"])
def test_the_pool_is_squeezed_until_somebody_is_preempted_and_no_further(model, caching):
    typed: dict[str, Any] = {"enable_prefix_caching": caching, "block_size": 16}
    smaller = squeezed(typed, settled_config(model, **typed), SEQUENCES)
    assert smaller is not None
    assert smaller["max_model_len"] == 63
    assert preemptions(rehearse(settled_config(model, **smaller), SEQUENCES)) > 0
    ample = smaller | {"num_gpu_blocks_override": 200}
    assert preemptions(rehearse(settled_config(model, **ample), SEQUENCES)) == 0


def test_a_pool_is_preferred_that_interrupts_a_prompt_whose_values_are_asked_for():
    typed: dict[str, Any] = {"block_size": 16, "max_num_batched_tokens": 64}
    asked = [*SEQUENCES[:3], SEQUENCES[3]._replace(params=replace(params(16), prompt_logprobs=8))]
    smaller = squeezed(typed, settled_config("llama-tiny", **typed), asked)
    assert smaller is not None
    played = rehearse(settled_config("llama-tiny", **smaller), asked)
    assert cut_short(played[-1].chunks, 47)


@pytest.mark.parametrize(
    ("chunks", "inside"),
    [
        ([(0, 10), (10, 1)], False),
        ([(0, 4), (4, 6), (10, 1)], False),
        ([(0, 4), (0, 10), (10, 1)], True),
        ([(0, 4), (4, 4), (0, 10)], True),
        ([(0, 10), (10, 1), (0, 11)], False),
        ([(8, 1), (8, 2)], True),
    ],
)
def test_a_request_that_began_anew_inside_its_prompt(chunks, inside):
    assert cut_short(chunks, 10) == inside


def test_requests_that_never_run_together_cannot_be_squeezed():
    typed = {"max_num_seqs": 1}
    assert squeezed(typed, settled_config(max_num_seqs=1), SEQUENCES) is None
    assert not Preemption().applies(settled_config(max_num_seqs=1))
    assert Preemption().applies(settled_config())


def test_a_preemption_that_was_rehearsed_but_did_not_happen_is_vacuous(monkeypatch):
    settled = settled_config(block_size=16)

    class Undisturbed(Scripted):
        def __init__(self, checkpoint, typed):
            super().__init__(settled, [stats_of()] * 4)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    monkeypatch.setattr(preemption_module, "Subject", Undisturbed)
    cold = [answered(length) for length in (15, 17, 47, 48, 49)]
    outcome = Preemption().check(trial(settled, cold))
    assert "nothing was preempted" in str(outcome.vacuous)
    assert [item.prompt.name for item in outcome.answered] == ["p49", "p48", "p47", "p17", "p17"]


def test_a_pool_that_cannot_be_made_small_enough_is_vacuous():
    settled = settled_config(block_size=16)
    outcome = Preemption().check(trial(settled, [answered(17)]))
    assert "no pool size" in str(outcome.vacuous)


ENDS = planned(17, "later-block", 32)
WHOLE = [answered(15), answered(49)]


def test_a_later_block_that_was_not_cached_proves_nothing():
    settled = settled_config(block_size=16)
    relation = LaterBlock()
    assert relation.applies(settled)
    assert not relation.applies(settled_config(enable_prefix_caching=False))
    good = relation.check(trial(settled, WHOLE, hits(48, 0, 16), [ENDS]))
    assert (good.vacuous, list(good.broken)) == (None, [])
    assert "32 tokens of the whole prompt" in str(
        relation.check(trial(settled, WHOLE, hits(32, 0, 16), [ENDS])).vacuous
    )
    assert "under its own beginning" in str(relation.check(trial(settled, WHOLE, hits(48, 0, 0), [ENDS])).vacuous)
    assert "does not fit" in str(relation.check(trial(settled, WHOLE)).vacuous)


def test_a_later_block_that_is_taken_for_a_first_one_is_broken():
    outcome = LaterBlock().check(trial(settled_config(block_size=16), WHOLE, hits(48, 16, 16), [ENDS]))
    assert outcome.broken == ["16 tokens were taken from the cache, though no request began with them"]


def test_a_request_that_does_not_go_on_where_another_stopped_proves_nothing():
    settled = settled_config(block_size=16)
    first, before, after = stats_of(), stats_of(), stats_of(chunks=[(16, 1), (17, 1)])
    good = ReusedId().check(trial(settled, WHOLE, [first, before, after], [ENDS]))
    assert (good.vacuous, good.figures) == (None, {"continued": 1})
    cold = ReusedId().check(trial(settled, WHOLE, [first, before, stats_of(chunks=[(0, 17)])], [ENDS]))
    assert "began with 17 tokens at 0, not with 1 at 16" in str(cold.vacuous)
    assert "do not fit" in str(ReusedId().check(trial(settled, WHOLE)).vacuous)


ONE_TOKEN = [Planned(f"token-{i}", (i,), "one-token") for i in (3, 4, 5)]


def steps(*chunks):
    ledger = Ledger()
    ledger.steps = [tuple(Scheduled(*chunk) for chunk in step) for step in chunks]
    return ledger


@pytest.mark.parametrize(
    ("reused", "lengths", "occurred"), [({"0", "2"}, (1, 1, 1), 2), (set(), (1, 1, 1), 0), ({"0"}, (1, 1, 7), 0)]
)
def test_a_state_that_nobody_had_before_proves_nothing(reused, lengths, occurred):
    ledger = steps([(str(i), 0, length) for i, length in enumerate(lengths)])
    ledger.reused_states = reused
    outcome = StateReuse().check(trial(settled_config(), [], kept_back=ONE_TOKEN, ledger=ledger))
    assert outcome.figures == {"states_reused": occurred}
    assert (outcome.vacuous is None) == (occurred > 0)
    assert not StateReuse().applies(settled_config("llama-tiny"))


def admitted(policy, order, seats=2):
    ledger = steps(*([(f"admission-order-{i}", 0, 1) for i in order[at : at + seats]] for at in range(0, 4, seats)))
    settled = settled_config(max_num_seqs=2, scheduling_policy=policy)
    return AdmissionOrder().check(trial(settled, [], kept_back=ONE_TOKEN, ledger=ledger))


@pytest.mark.parametrize(("policy", "order"), [("fcfs", [0, 1, 2, 3]), ("priority", [3, 1, 2, 0])])
def test_requests_begin_in_the_order_of_the_policy(policy, order):
    good = admitted(policy, order)
    assert (good.vacuous, good.broken) == (None, [])
    (said,) = admitted(policy, [order[0], order[2], order[1], order[3]]).broken
    assert said == (
        f"under the policy {policy!r} the request to begin as number 2 is admission-order-{order[1]}; "
        f"admission-order-{order[2]} began"
    )
    assert "; none began" in admitted(policy, order[:3]).broken[0]
    assert "no request had to wait" in str(admitted(policy, order, seats=4).vacuous)


def test_where_many_may_run_at_once_nobody_is_made_to_wait():
    assert AdmissionOrder().applies(settled_config(max_num_seqs=16))
    assert not AdmissionOrder().applies(settled_config(max_num_seqs=17))


def test_an_abort_that_did_not_happen_proves_nothing():
    outcome = Aborts().check(trial(settled_config(max_num_seqs=2), WHOLE, ledger=steps()))
    assert "no request was aborted while it generates nor before it began" in str(outcome.vacuous)


def test_an_engine_that_holds_something_with_no_request_left_is_broken():
    asked = trial(settled_config(max_num_seqs=2), WHOLE, ledger=steps())
    held: Any = SimpleNamespace(num_running=0, num_waiting=1, kv_cache_usage=0.25)
    asked.subject.llm.client.stats = lambda: {0: held}
    assert Aborts().check(asked).broken == [
        "with no request left the engine has requests that wait: 1",
        "with no request left the engine has the pool in use: 0.25",
    ]


def test_an_eviction_that_did_not_happen_proves_nothing(monkeypatch):
    settled = settled_config(block_size=16)
    for again, evicted in ((32, 16), (0, 48), (48, 0)):
        small = Scripted(settled, hits(0, 0, again))
        monkeypatch.setattr(eviction_module, "Subject", lambda checkpoint, typed, small=small: nullcontext(small))
        outcome = Eviction().check(trial(settled, WHOLE, kept_back=[ENDS]))
        assert outcome.figures["evicted"] == evicted
        cached = "all 48 tokens of the prompt were still cached in a pool of"
        assert (cached in str(outcome.vacuous)) == (evicted == 0)


TEXTS = [answered(20, "text"), answered(49)]
QUESTION = replace(TEXTS[0], prompt=replace(TEXTS[0].prompt, name="question"))
WORD = replace(TEXTS[0], prompt=Planned("one-word", (9,), "text"))


class Certain:
    """Stands for an oracle that leaves nothing to chance."""

    def score(self, tokens, last, routing):
        rows = np.full((last, 512), -1e9)
        rows[:, 1] = 0
        return rows


def test_draws_that_no_parameter_decides_prove_nothing():
    asked = replace(trial(settled_config(), [QUESTION, WORD, TEXTS[1]]), scores=Certain())
    assert Sampling().check(asked).vacuous == (
        "no draw was not the best, none was decided by top k, none was decided by top p"
    )


def test_draws_that_the_law_does_not_allow_are_broken():
    outcome = Sampling().check(trial(settled_config(), [QUESTION, WORD, TEXTS[1]]))
    assert "two requests without a seed drew the same tokens" in outcome.broken[-1]  # ones, always
    assert any("where the law draws" in said for said in outcome.broken)
    assert "do not fit" in str(Sampling().check(trial(settled_config(), [WORD])).vacuous)
    assert not Sampling().applies(settled_config(dtype="bfloat16"))


def test_prompts_that_were_not_cut_prove_nothing():
    settled = settled_config(max_num_batched_tokens=40)
    cold = [answered(49), answered(50)]
    assert PromptLogprobs().check(trial(settled, cold)).vacuous == "no prompt was cut"
    cut = [stats_of(chunks=[(0, 40), (40, 9), (49, 1)])] * 2
    assert PromptLogprobs().check(trial(settled, cold, cut)).vacuous is None


def test_an_end_of_sequence_that_no_seed_draws_proves_nothing(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text('{"eos_token_id": 2}')
    asked = replace(trial(settled_config(), [QUESTION]), checkpoint=tmp_path)
    observed = Observed(tuple(range(16)), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0, 0)))
    asked = replace(asked, cold=[replace(QUESTION, answer=Answer(observed, stats_of(), False))])
    outcome = Stops().check(asked)
    assert outcome.vacuous is None
    assert outcome.broken[0].startswith("a stop token: the request ended by 'length' after 16 tokens, not by 'stop'")
    assert any(said.startswith("end of sequence:") for said in outcome.broken)
    monkeypatch.setattr(stops_module, "SEEDS", 0)
    assert "none of 0 seeds draws" in str(Stops().check(asked).vacuous)


def test_relations_have_names_of_their_own():
    names = [relation.name for relation in RELATIONS]
    assert len(set(names)) == len(names)
    assert all("," not in name for name in names)  # what follows a comma tells the runs of one relation apart


def test_a_matrix_can_name_every_relation_and_no_other():
    assert tuple(relation.name for relation in RELATIONS) == RELATION_NAMES
