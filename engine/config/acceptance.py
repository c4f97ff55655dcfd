"""Stage three: a configuration that may be used, or one error with every reason."""

from collections.abc import Mapping
from typing import Any

from staticfire.engine.config.device import CPU, Device
from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.config.errors import ConfigError, Fault
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.release import REFERENCE
from staticfire.engine.config.resolver import resolve, rule_faults
from staticfire.engine.config.runnable import running_faults


def accept(
    typed: Mapping[str, Any], model: ModelInfo, device: Device = CPU, *, for_running: bool = False
) -> ResolvedConfig:
    """Resolve for the engine of this package, the only one that runs what is accepted, and insist.

    Args:
        typed: What the user wrote, by vLLM's keyword names.
        model: The model.
        device: The device it is meant for.
        for_running: Also ask whether the reference engine can run it today: family, process layout, cache dtype.
            `explain` does not ask; the engine does before it loads weights.

    Returns:
        The frozen configuration.

    Raises:
        ConfigError: Field errors, broken rules, and with `for_running` what cannot be run; all at once.
    """
    resolution = resolve(typed, model, device, REFERENCE)
    faults: list[Fault] = rule_faults(resolution)
    if for_running:
        faults.extend(running_faults(resolution, model))
    if faults or resolution.config is None:
        raise ConfigError(faults)
    return resolution.config
