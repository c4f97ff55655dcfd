"""What the reference engine can resolve but not run yet. Not a rule: the configuration itself is sound."""

from typing import Final

from staticfire.engine.config.errors import Fault
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.resolution import Resolution
from staticfire.engine.models.registry import FAMILIES

COMPUTED_DTYPES: Final = frozenset({"float16", "bfloat16", "float32", "float64"})


def running_faults(resolution: Resolution, model: ModelInfo) -> list[Fault]:
    """Everything that stands between an accepted configuration and a run on the reference engine.

    Returns:
        One fault for each obstacle; empty where it can run.
    """
    faults: list[Fault] = []
    if model.architecture not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        faults.append(
            Fault(
                "family-not-runnable",
                "model.architecture",
                f"the reference engine resolves {model.architecture} but cannot run it yet; it runs {known}",
                value=model.architecture,
            )
        )
    ranks = resolution.values["parallel.tensor_parallel_size"].value
    if ranks > 1 and resolution.values["parallel.enable_expert_parallel"].value:
        message = (
            f"enable_expert_parallel with tensor_parallel_size={ranks}: the reference engine resolves it, but splits "
            "every expert over the ranks, not the experts among them"
        )
        faults.append(Fault("layout-not-runnable", "parallel.enable_expert_parallel", message, value=True))
    kv = resolution.values["cache.cache_dtype"].value
    if kv not in COMPUTED_DTYPES:
        message = (
            f"kv_cache_dtype={kv}: the reference engine resolves it but keeps keys and values in the model's dtype"
        )
        faults.append(Fault("kv-dtype-not-runnable", "cache.cache_dtype", message, value=kv))
    return faults
