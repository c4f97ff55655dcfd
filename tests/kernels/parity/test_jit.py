import pytest
import torch
import triton
import triton.language as tl

from staticfire.kernels import jit
from staticfire.kernels.testing import bits_equal

pytestmark = [pytest.mark.engine, pytest.mark.interp]

FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]


@triton.jit
def _widen(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, jit.widen(tl.load(x + i)))


@triton.jit
def _round(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, jit.to_fp8(tl.load(x + i), out.dtype.element_ty))


@triton.jit
def _owners(starts, out, count, TILE: tl.constexpr):
    tile = tl.program_id(0)
    group, first, end, begin = jit.owner_of(tile, starts, count, TILE)
    place = out + tile * 4
    tl.store(place, group)
    tl.store(place + 1, first)
    tl.store(place + 2, end)
    tl.store(place + 3, begin)


@pytest.mark.parametrize("dtype", FP8)
def test_every_code_is_read_as_torch_reads_it(dtype):
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    out = torch.zeros(256)
    _widen[(1,)](codes, out, 256)
    expected = codes.float()
    assert torch.equal(out.isnan(), expected.isnan())
    assert bits_equal(out[~expected.isnan()], expected[~expected.isnan()])


@pytest.mark.parametrize("dtype", FP8)
def test_rounding_to_8_bits_is_to_nearest_with_ties_to_even_and_saturates(dtype):
    codes = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    exact = codes[codes.isfinite()].sort().values
    ties = (exact[1:] + exact[:-1]) / 2
    nearly = torch.cat([ties.nextafter(torch.tensor(torch.inf)), ties.nextafter(torch.tensor(-torch.inf))])
    far = torch.tensor([torch.inf, -torch.inf, 1e30, -1e30, 464.0, 465.0, 61440.0, 1e-40, -1e-40, torch.nan])
    x = torch.cat([exact, ties, nearly, far, torch.zeros(1024)])[:1024]
    assert bool(x.isnan().any())
    out = torch.zeros(1024, dtype=torch.uint8).view(dtype)
    _round[(1,)](x, out, 1024)
    largest = torch.finfo(dtype).max
    number = ~x.isnan()
    assert bits_equal(out.float()[number], x.clamp(-largest, largest).to(dtype).float()[number])
    assert bool(out.float()[~number].isnan().all())


@pytest.mark.parametrize(
    "lengths", [[5, 0, 3], [0, 0, 7, 0], [1], [0], [4, 4, 4], [3, 1, 1, 1, 1, 1, 9], [1] * 9, [0, 5, 0, 0, 4]]
)
@pytest.mark.parametrize("tile", [1, 2, 4, 16])
def test_tiles_of_ragged_groups_cover_each_item_once(lengths, tile):
    starts = torch.tensor([0, *lengths]).cumsum(0)
    tiles = sum(lengths) // tile + len(lengths)
    out = torch.full((tiles, 4), -1, dtype=torch.int32)
    _owners[(tiles,)](starts, out, len(lengths), tile)
    seen = []
    for group, first, end, begin in out.tolist():
        assert (first, end) == (int(starts[group]), int(starts[group + 1]))
        seen += [(group, item) for item in range(begin, min(begin + tile, end))]
    assert seen == [(g, i) for g in range(len(lengths)) for i in range(int(starts[g]), int(starts[g + 1]))]


def test_a_gpu_without_conversions_is_refused(monkeypatch):
    class Cache:
        dtype, device = torch.float8_e4m3fn, torch.device("cuda")

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    with pytest.raises(ValueError, match=r"needs compute capability 8.9; this GPU has 8.0: use float8_e5m2"):
        jit.require_fp8(Cache())  # type: ignore[arg-type] # a GPU's tensor cannot be made here
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    jit.require_fp8(Cache())  # type: ignore[arg-type]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    Cache.dtype = torch.float8_e5m2
    jit.require_fp8(Cache())  # type: ignore[arg-type]
