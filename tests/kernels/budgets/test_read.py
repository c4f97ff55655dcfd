"""What is read out of binaries, on texts as the compilers write them."""

import struct

import pytest

from staticfire.kernels.budgets import read

USAGE = """
Resource usage:
 Common:
  GLOBAL:0
 Function _scan:
  REG:168 STACK:8 SHARED:0 LOCAL:0 CONSTANT[0]:400 TEXTURE:0 SURFACE:0 SAMPLER:0
"""

METADATA = """
amdhsa.kernels:
  - .agpr_count:     0
    .private_segment_fixed_size: 24
    .sgpr_spill_count: 44
    .vgpr_count:     106
    .vgpr_spill_count: 6
"""

TTIR = """
    %inside = arith.cmpi slt, %column, %end : tensor<64xi64> loc(#loc)
    %slot = tt.load %slots : !tt.ptr<i64> loc(#loc)
    %x = tt.load %p, %inside, %cst : tensor<64x!tt.ptr<bf16>> loc(#loc)
    %y = tt.load %q : tensor<64x!tt.ptr<bf16>> loc(#loc)
    %z = tt.load %q, %inside {evict = 1 : i32} : tensor<64x!tt.ptr<bf16>> loc(#loc)
    tt.store %p, %x, %inside : tensor<64x!tt.ptr<bf16>> loc(#loc)
    tt.store %q, %y : tensor<64x!tt.ptr<bf16>> loc(#loc)
    tt.store %slots, %slot : !tt.ptr<i64> loc(#loc)
    %k = arith.cmpf olt, %x, %y : tensor<64xbf16> loc(#loc)
"""


def elf(sections):
    """A 64-bit ELF file with sections of the given names and lengths."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    starts = [names.index(name.encode() + b"\0") for name in [*sections, ".shstrtab"]]
    sizes = [*sections.values(), len(names)]
    head = bytearray(b"\x7fELF\x02\x01" + bytes(58))
    body = b"".join(bytes(size) for size in sections.values())
    offsets = [64 + sum(sizes[:index]) for index in range(len(sizes))]
    table = 64 + len(body) + len(names)
    struct.pack_into("<Q", head, 0x28, table)
    struct.pack_into("<HHH", head, 0x3A, 64, len(sizes) + 1, len(sizes))
    rows = [bytes(64)]
    for name, offset, size in zip(starts, offsets, sizes, strict=True):
        rows.append(struct.pack("<IIQQQQ", name, 1, 0, 0, offset, size).ljust(64, b"\0"))
    return bytes(head) + body + names + b"".join(rows)


def test_the_length_of_code_is_that_of_the_text_sections():
    assert read.code_bytes(elf({".text._scan": 384, ".nv.info": 100, ".debug": 7})) == 384
    assert read.code_bytes(elf({".note": 3, ".text": 256})) == 256


@pytest.mark.parametrize("data", [b"", b"MZ", b"\x7fELF\x01\x01" + bytes(58)])
def test_what_is_no_binary_of_ours_is_refused(data):
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF"):
        read.code_bytes(data)


def test_registers_and_stack_of_nvidia():
    assert read.cuobjdump_usage(USAGE) == (168, 8)


@pytest.mark.parametrize("text", ["", USAGE + USAGE])
def test_other_than_one_function_is_refused(text):
    with pytest.raises(ValueError, match="functions instead of one"):
        read.cuobjdump_usage(text)


def test_registers_and_spills_of_amd():
    usage = read.amd_usage(METADATA)
    assert (usage["vgpr_count"], usage["vgpr_spill_count"], usage["sgpr_spill_count"]) == (106, 6, 44)
    assert usage["private_segment_fixed_size"] == 24


def test_missing_metadata_is_named():
    with pytest.raises(ValueError, match="lacks sgpr_spill_count"):
        read.amd_usage(METADATA.replace(".sgpr_spill_count", ".other"))


@pytest.mark.parametrize(
    ("assembly", "names", "wide"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1}", "mma.sync", 0),
        ("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16\nmma.sync.aligned", "mma.sync, wgmma.mma_async", 0),
        ("tcgen05.mma.cta_group::1.kind::f16 [ %r1 + 0 ]", "tcgen05.mma", 0),
        ("v_mfma_f32_32x32x8_bf16_1k a[0:15]", "v_mfma", 0),
        ("// mma_like\nfma.rn.f32 %f1, %f2", None, 0),
        ("ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", None, 1),
        ("ld.global.L1::evict_last.v2.b64 { %rd1, %rd2 }, [ %rd1 + 0 ];", None, 1),
        ("ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];\nst.global.v4.b32 [ %rd1 ], {%r1}", None, 0),
        ("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;", None, 1),
        ("cp.async.ca.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x8, %r2;", None, 0),
        ("buffer_load_dwordx4 v[0:3], v4\nglobal_load_dwordx2 v[0:1], v[2:3]\nglobal_load_dwordx4 v[0:3]", None, 2),
    ],
)
def test_instructions_that_matter(assembly, names, wide):
    assert read.instruction_mix(assembly) == (names, wide)


def test_blocks_without_a_mask_are_counted_and_single_values_are_not():
    assert read.masks(TTIR) == (2, 1)
