"""Named devices, from `matrices/devices.toml`. Imports no torch and asks nothing of the machine at hand."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from staticfire.engine.config.device import Device
from staticfire.harness.errors import InputError, nearest

_KEYS = {"description", "type", "memory_gib", "capability"}
_TYPES = ("cpu", "cuda", "rocm")


def names() -> tuple[str, ...]:
    """Every named device, in the order of the file."""
    return tuple(_all())


def find(name: str) -> Device:
    """Find a device by name.

    Raises:
        InputError: Unknown name.
    """
    if name not in _all():
        raise InputError(f"No device named {name!r}.{nearest(name, _all())} Devices: {', '.join(_all())}.")
    return _all()[name]


def parse(text: str, where: str) -> dict[str, Device]:
    """Read a file of devices and report all its faults at once.

    Args:
        text: The TOML text.
        where: The file's name, for messages.

    Raises:
        InputError: Broken TOML, unknown or missing keys, impossible values.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: {error}.") from error
    faults = [f"[{name}] {fault}" for name, facts in document.items() for fault in _faults(facts)]
    if faults:
        raise InputError(f"{where}: " + "; ".join(faults))
    return {name: _device(name, facts) for name, facts in document.items()}


@cache
def _all() -> dict[str, Device]:
    text = files("staticfire.matrices").joinpath("devices.toml").read_text(encoding="utf-8")
    return parse(text, "matrices/devices.toml")


def _faults(facts: Any) -> list[str]:
    if not isinstance(facts, dict):
        return [f"must be a table, got {facts!r}"]
    found = [f"unknown key {key!r}.{nearest(key, _KEYS)}" for key in sorted(set(facts) - _KEYS)]
    if facts.get("type") not in _TYPES:
        found.append(f"type must be one of {', '.join(_TYPES)}, got {facts.get('type')!r}")
    memory = facts.get("memory_gib")
    if not isinstance(memory, int) or isinstance(memory, bool) or memory < 1:
        found.append(f"memory_gib must be a whole number from 1 on, got {memory!r}")
    capability = facts.get("capability")
    if facts.get("type") == "cpu" and capability is not None:
        found.append("a cpu has no capability")
    elif facts.get("type") != "cpu" and not (isinstance(capability, str) and re.fullmatch(r"\d+\.\d", capability)):
        found.append(f"capability must be a string such as '9.0', got {capability!r}")
    return found


def _device(name: str, facts: dict[str, Any]) -> Device:
    capability = None
    if "capability" in facts:
        major, minor = facts["capability"].split(".")
        capability = (int(major), int(minor))
    return Device(name=name, type=facts["type"], memory_bytes=facts["memory_gib"] * 2**30, capability=capability)
