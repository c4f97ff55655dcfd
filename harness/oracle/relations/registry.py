"""Every relation a cell is held to. A new one is a file beside this one and a line here."""

from staticfire.harness.oracle.relations.base import Relation
from staticfire.harness.oracle.relations.chunk_split import ChunkSplit
from staticfire.harness.oracle.relations.preemption import Preemption
from staticfire.harness.oracle.relations.prefix_hit import PrefixHit
from staticfire.harness.oracle.relations.spans import BlockBoundaries

RELATIONS: tuple[Relation, ...] = (BlockBoundaries(), ChunkSplit(), PrefixHit(), Preemption())
