"""Sums over processes: right in every dtype, the same bits everywhere, and an error when a rank is gone."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import torch

from gloo_ranks import DTYPES, mine
from staticfire.engine.process.child import Child

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(240)]

LIMIT_S = 200.0


@contextmanager
def ranks(entry: str, size: int, folder: Path) -> Iterator[list[bytes]]:
    """The first thing that each rank says."""
    with ExitStack() as stack:
        children = []
        for rank in range(size):
            payload = json.dumps({"rank": rank, "size": size, "store": str(folder / "store")}).encode()
            children.append(Child(f"rank {rank}", f"gloo_ranks:{entry}", payload))
            stack.callback(children[-1].kill)
        yield [child.channel.receive(LIMIT_S) for child in children]


@pytest.mark.parametrize("size", [2, 3])
def test_sums_and_gathers(size: int, tmp_path: Path):
    with ranks("computes", size, tmp_path) as answers:
        found = [json.loads(answer) for answer in answers]
    assert all(answer == found[0] for answer in found)
    outcomes = iter(found[0])
    for dtype in DTYPES:
        for rows in (1, 5, 3000):
            total, side_by_side = next(outcomes)
            parts = [mine(rank, dtype, rows) for rank in range(size)]
            wanted = parts[0]
            for part in parts[1:]:
                wanted = wanted + part
            assert total == wanted.double().tolist()
            assert side_by_side == torch.cat(parts, 1).double().tolist()


def test_a_rank_that_is_gone(tmp_path: Path):
    with ranks("loses", 2, tmp_path) as (error, left):
        assert left == b"left"
        assert error.startswith(b"rank 0 lost the others: ")
