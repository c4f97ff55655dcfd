"""What a scan may assume when it reads for a check: the facts of the device."""

from staticfire.harness.check.engines import Asked
from staticfire.harness.files import default_cache_dir
from staticfire.harness.models import devices
from staticfire.harness.scan.base import ScanConfig


def scan_config(asked: Asked) -> ScanConfig:
    """How to read for a device.

    The number of devices is left open: whoever runs a suite that wants eight has eight.
    """
    device = devices.find(asked.device)
    return ScanConfig(
        platform=device.type,
        capability=device.capability,
        cache_dir=default_cache_dir() / "scan" if asked.cache else None,
        processes=asked.processes,
    )
