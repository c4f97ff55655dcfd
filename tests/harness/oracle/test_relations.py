"""Every relation passes where its condition occurred and calls itself vacuous where it did not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from settled_config import settled_config
from staticfire.engine.outputs import RequestStats
from staticfire.harness.matrix.workload import RELATION_NAMES
from staticfire.harness.oracle.compare import Observed
from staticfire.harness.oracle.plan import Planned
from staticfire.harness.oracle.relations import preemption as preemption_module
from staticfire.harness.oracle.relations.base import Answered, Trial
from staticfire.harness.oracle.relations.chunk_split import ChunkSplit, prefill_chunks
from staticfire.harness.oracle.relations.preemption import Preemption, rehearse, squeezed
from staticfire.harness.oracle.relations.prefix_hit import PrefixHit
from staticfire.harness.oracle.relations.registry import RELATIONS
from staticfire.harness.oracle.relations.spans import BlockBoundaries
from staticfire.harness.oracle.subject import Answer

pytestmark = pytest.mark.engine

EMPTY = Observed((), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0, 0)))


def answered(length, family="block", **stats):
    return Answered(
        "cold", Planned(f"p{length}", tuple(range(length)), family), Answer(EMPTY, stats_of(**stats), False)
    )


def stats_of(**stats):
    return RequestStats(**stats)


class Scripted:
    """Stands for the engine under test: answers a second run with the stats it was given."""

    def __init__(self, settled, stats=()):
        self.config = settled
        self.stats = stats

    def answers(self, prompts, continuations, max_tokens):
        return [Answer(EMPTY, stats, False) for _, stats in zip(prompts, self.stats, strict=True)]


def trial(settled, cold, again=()):
    continuations = {item.prompt.tokens: (1,) * 16 for item in cold}
    subject: Any = Scripted(settled, again)
    return Trial(Path("checkpoint"), {}, subject, cold, continuations, 16)


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
    assert (split.vacuous, split.figures) == (None, {"prompts_split": 1})
    assert "no prompt was split" in str(relation.check(trial(settled, [answered(10, chunks=[(0, 10)])])).vacuous)


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


SEQUENCES = [(tuple(range(i, i + 47)), tuple(range(16))) for i in (0, 100, 200, 300)]


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("model", ["jamba-tiny", "llama-tiny"])
def test_the_pool_is_squeezed_until_somebody_is_preempted_and_no_further(model, caching):
    typed: dict[str, Any] = {"enable_prefix_caching": caching, "block_size": 16}
    smaller = squeezed(typed, settled_config(model, **typed), SEQUENCES)
    assert smaller is not None
    assert smaller["max_model_len"] == 63
    assert rehearse(settled_config(model, **smaller), SEQUENCES) > 0
    ample = smaller | {"num_gpu_blocks_override": 200}
    assert rehearse(settled_config(model, **ample), SEQUENCES) == 0


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
    assert [item.prompt.name for item in outcome.answered] == ["p49", "p48", "p47", "p17"]


def test_a_pool_that_cannot_be_made_small_enough_is_vacuous():
    settled = settled_config(block_size=16)
    outcome = Preemption().check(trial(settled, [answered(17)]))
    assert "no pool size" in str(outcome.vacuous)


def test_relations_have_names_of_their_own():
    names = [relation.name for relation in RELATIONS]
    assert len(set(names)) == len(names) == 4


def test_a_matrix_can_name_every_relation_and_no_other():
    assert tuple(relation.name for relation in RELATIONS) == RELATION_NAMES
