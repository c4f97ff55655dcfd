"""What a typed `speculative_config` asks for, as far as the sizes of caches depend on it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

WITHOUT_DRAFT_LAYERS: Final = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods that guess from the text alone: no layer of a draft model keeps a cache of its own."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding as it was typed.

    Attributes:
        tokens: Tokens guessed in a step; 0 without speculation, None where the keyword does not say.
        draft_layers: Whether layers of a draft model keep a cache beside those of the model.
    """

    tokens: int | None = 0
    draft_layers: bool = False


NONE: Final = Speculation()
UNREADABLE: Final = Speculation(None, draft_layers=True)
PARTS: Final = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
"""Keyword -> the part of `speculative_config` that it stands for."""


def read_speculation(others: Mapping[str, Any]) -> Speculation:
    """Read `speculative_config`, and the flags that stand for its parts.

    Args:
        others: Keyword -> typed value, of the keywords that are known and not implemented.

    Returns:
        What they say; where that cannot be read, the number of tokens is not known.
    """
    typed = others.get("speculative_config") or {}
    if isinstance(typed, str):
        try:
            typed = json.loads(typed)
        except ValueError:
            return UNREADABLE
    if not isinstance(typed, Mapping):
        return UNREADABLE
    said = {str(key).replace("-", "_"): value for key, value in typed.items()}
    said |= {part: others[name] for name, part in PARTS.items() if others.get(name)}
    if not said:
        return NONE
    method = str(said.get("method") or said.get("model"))
    return Speculation(_count(said.get("num_speculative_tokens")), method not in WITHOUT_DRAFT_LAYERS)


def _count(value: object) -> int | None:
    """The number, also as the text that a dotted flag gives."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
