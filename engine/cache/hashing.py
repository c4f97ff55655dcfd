"""The hash chain that names a prefix. Imports no torch.

`hash_i = H(hash_{i-1}, tokens of block i, extra)`, so one hash stands for every token from position 0 to the end of
block i; only full blocks have one. The bytes hashed are fixed-width and little-endian: the same tokens have the
same hash in every process, on every machine, in every run.
"""

import struct
from collections.abc import Sequence
from hashlib import blake2b

from staticfire.engine.cache.spec import CacheLayout, MambaSpec
from staticfire.engine.request import Request

ROOT_HASH = bytes(16)
"""Parent of the first block."""


def hash_block(parent: bytes, tokens: Sequence[int], extra: bytes = b"") -> bytes:
    """Return the 16-byte hash of a block that follows `parent`.

    Args:
        parent: Hash of the block before, `ROOT_HASH` for the first.
        tokens: The block's token ids.
        extra: What else its content depends on (an adapter, a salt).
    """
    digest = blake2b(parent, digest_size=16)
    digest.update(struct.pack(f"<{len(tokens) + 1}q", len(tokens), *tokens))
    digest.update(extra)
    return digest.digest()


def extend_chain(request: Request, block_size: int, num_tokens: int) -> list[bytes]:
    """Grow `request.block_hashes` to every full block of its first `num_tokens` tokens, and return it."""
    chain = request.block_hashes
    for index in range(len(chain), num_tokens // block_size):
        start = index * block_size
        parent = chain[-1] if chain else ROOT_HASH
        chain.append(hash_block(parent, request.tokens(start, start + block_size)))
    return chain


def hash_block_size(layout: CacheLayout) -> int | None:
    """Return the tokens per hash, None where prefixes cannot be cached.

    A group that keeps one state a request and no other (`none`) can restore nothing, so no prefix is worth a hash.

    Raises:
        ValueError: Groups of different block sizes; the worker's alignment makes them equal before.
    """
    if any(isinstance(group.spec, MambaSpec) and group.spec.mode == "none" for group in layout.groups):
        return None
    sizes = {group.spec.block_size for group in layout.groups}
    if len(sizes) != 1:
        raise ValueError(f"cache groups of block sizes {sorted(sizes)}: prefix caching needs one size for all")
    return sizes.pop()
