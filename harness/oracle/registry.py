"""Every oracle by name. A new one is a file beside this one and a line here."""

from collections.abc import Callable, Mapping

from staticfire.harness.oracle.base import Oracle
from staticfire.harness.oracle.transformers import TransformersOracle

ORACLES: Mapping[str, Callable[[], Oracle]] = {
    "transformers": TransformersOracle,
}
