"""Every model family that configuration understands."""

from staticfire.engine.config.families import (
    bamba,
    dense,
    falcon_h1,
    gated_delta_net,
    granite,
    jamba,
    mamba,
    nemotron_h,
)
from staticfire.engine.config.families.base import Family

FAMILIES: tuple[Family, ...] = (
    jamba.FAMILY,
    mamba.FAMILY,
    bamba.FAMILY,
    nemotron_h.FAMILY,
    granite.FAMILY,
    falcon_h1.FAMILY,
    gated_delta_net.FAMILY,
    dense.FAMILY,
)

BY_MODEL_TYPE: dict[str, Family] = {name: family for family in FAMILIES for name in family.model_types}
