"""What a scan may assume when it reads for a check: the facts of the device."""

import os
from pathlib import Path

from staticfire.harness.check.engines import Asked
from staticfire.harness.models import devices
from staticfire.harness.scan.base import ScanConfig


def cache_folder() -> Path:
    """Where scans are kept: $STATICFIRE_CACHE, else the user's cache folder."""
    chosen = os.environ.get("STATICFIRE_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "staticfire"


def scan_config(asked: Asked) -> ScanConfig:
    """How to read for a device.

    The number of devices is left open: whoever runs a suite that wants eight has eight.
    """
    device = devices.find(asked.device)
    return ScanConfig(
        platform=device.type,
        capability=device.capability,
        cache_dir=cache_folder() / "scan" if asked.cache else None,
        processes=asked.processes,
    )
