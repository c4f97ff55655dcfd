"""What a scan may assume when it reads for a check: the facts of the device."""

from collections.abc import Mapping

from staticfire.harness.check.engines import Asked
from staticfire.harness.files import default_cache_dir
from staticfire.harness.models import devices
from staticfire.harness.scan.base import Constant, ScanConfig


def scan_config(
    asked: Asked, versions: Mapping[str, str] | None = None, constants: Mapping[str, Constant] | None = None
) -> ScanConfig:
    """How to read for a device.

    The number of devices is left open: whoever runs a suite that wants eight has eight.

    Args:
        asked: The device, and how to read.
        versions: Package -> version in the engine's environment, deciding the checks that a suite makes of them.
        constants: What names of the engine's classes stand for.
    """
    device = devices.find(asked.device)
    return ScanConfig(
        platform=device.type,
        versions={name: text.partition("+")[0] for name, text in (versions or {}).items() if text},
        constants=constants or {},
        capability=device.capability,
        cache_dir=default_cache_dir() / "scan" if asked.cache else None,
        processes=asked.processes,
    )
