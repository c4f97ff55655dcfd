"""The cache modes of recurrent state: a new one is one file and one line here. Imports no torch."""

from collections.abc import Mapping

from staticfire.engine.cache.aligned_state import AlignedStateManager
from staticfire.engine.cache.base import CacheGroupManager
from staticfire.engine.cache.single_state import SingleStateManager

RECURRENT_MODES: Mapping[str, type[CacheGroupManager]] = {
    "none": SingleStateManager,
    "align": AlignedStateManager,
}
