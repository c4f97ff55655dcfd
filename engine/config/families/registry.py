"""Every model family that configuration understands."""

from staticfire.engine.config.families import dense, jamba, mamba
from staticfire.engine.config.families.base import Family

FAMILIES: tuple[Family, ...] = (
    jamba.FAMILY,
    mamba.FAMILY,
    dense.FAMILY,
)

BY_MODEL_TYPE: dict[str, Family] = {name: family for family in FAMILIES for name in family.model_types}
