"""Ranks that add and gather over gloo, as entries for `Child`."""

import json
from pathlib import Path

import torch

from staticfire.engine.parallel.base import GroupError
from staticfire.engine.parallel.gloo import GlooGroup
from staticfire.engine.process.frames import Channel

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def mine(rank: int, dtype: torch.dtype, rows: int) -> torch.Tensor:
    """What a rank brings; its sums depend on the order of the ranks."""
    generator = torch.Generator().manual_seed(rank)
    return (torch.randn(rows, 7, generator=generator, dtype=torch.float64) * 10.0 ** (3 * rank)).to(dtype)


def computes(payload: bytes, channel: Channel) -> None:
    """Send the sums and gathers of every dtype as lists; then do many without a pause."""
    task = json.loads(payload)
    group = GlooGroup(Path(task["store"]), task["rank"], task["size"], join_limit_s=100, step_limit_s=100)
    found = []
    for dtype in DTYPES:
        for rows in (1, 5, 3000):
            total = group.all_reduce(mine(group.rank, dtype, rows))
            side_by_side = group.all_gather(mine(group.rank, dtype, rows).t().contiguous().t())
            found.append([total.double().tolist(), side_by_side.double().tolist()])
    for number in range(300):
        (value,) = group.all_reduce(torch.tensor([float(number * (group.rank + 1))])).tolist()
        assert value == number * sum(range(1, group.size + 1)), (number, value)
    channel.send(json.dumps(found).encode())
    channel.receive()


def loses(payload: bytes, channel: Channel) -> None:
    """The last rank leaves after one operation; the others say what they see."""
    task = json.loads(payload)
    group = GlooGroup(Path(task["store"]), task["rank"], task["size"], join_limit_s=100, step_limit_s=100)
    group.all_reduce(torch.ones(3))
    if group.rank == group.size - 1:
        channel.send(b"left")
        return
    try:
        while True:
            group.all_reduce(torch.ones(3))
    except GroupError as error:
        channel.send(str(error).encode())
    channel.receive()
