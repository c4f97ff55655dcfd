from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.cache.grouping import group_layers, group_size

SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("buckets", "size"),
    [
        ([4, 28], 4),  # Jamba-1.5-Mini: one attention and seven state groups
        ([32], 32),
        ([10, 14], 14),  # 14 < 1.5 * 10: one padded group rather than two
        ([10, 15], 10),
        ([2, 3], 2),  # 3 is not less than 1.5 * 2
        ([1, 1], 1),
    ],
)
def test_group_size(buckets, size):
    assert group_size(buckets) == size


@given(SIZES)
def test_every_layer_is_in_one_group_and_order_is_kept(sizes):
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    buckets = {
        name: list(range(start, start + size)) for name, (start, size) in enumerate(zip(starts, sizes, strict=True))
    }
    groups = group_layers(buckets)
    assert [layer for _, layers in groups for layer in layers] == list(range(sum(sizes)))
    for name, layers in groups:
        assert 0 < len(layers) <= group_size(sizes)
        assert set(layers) <= set(buckets[name])


@given(SIZES)
def test_only_the_last_group_of_a_bucket_is_padded(sizes):
    groups = group_layers({name: list(range(size)) for name, size in enumerate(sizes)})
    for before, after in pairwise(groups):
        if before[0] == after[0]:
            assert len(before[1]) == group_size(sizes)


def test_empty_buckets_make_no_group():
    assert group_layers({"attention": [0, 1], "mamba": []}) == [("attention", (0, 1))]
