"""Every relation a cell is held to. A new one is a file beside this one and a line here.

They run in this order, on one engine: what an earlier one leaves in the cache, a later one meets.
"""

from staticfire.harness.oracle.relations.aborts import Aborts
from staticfire.harness.oracle.relations.admission_order import AdmissionOrder
from staticfire.harness.oracle.relations.base import Relation
from staticfire.harness.oracle.relations.chunk_split import ChunkSplit
from staticfire.harness.oracle.relations.eviction import Eviction
from staticfire.harness.oracle.relations.later_block import LaterBlock
from staticfire.harness.oracle.relations.preemption import Preemption
from staticfire.harness.oracle.relations.prefix_hit import PrefixHit
from staticfire.harness.oracle.relations.prompt_logprobs import PromptLogprobs
from staticfire.harness.oracle.relations.reused_id import ReusedId
from staticfire.harness.oracle.relations.sampling import Sampling
from staticfire.harness.oracle.relations.spans import BlockBoundaries
from staticfire.harness.oracle.relations.state_reuse import StateReuse
from staticfire.harness.oracle.relations.stops import Stops

RELATIONS: tuple[Relation, ...] = (
    BlockBoundaries(),
    ChunkSplit(),
    StateReuse(),
    PrefixHit(),
    LaterBlock(),
    Aborts(),
    ReusedId(),
    PromptLogprobs(),
    Sampling(),
    Stops(),
    AdmissionOrder(),
    Preemption(),
    Eviction(),
)
