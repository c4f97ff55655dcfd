"""What is told to the engine about a device: its entry in `matrices/devices.toml` and what vendors say beside."""

from typing import Any

from staticfire.engine.config.device import Device

# Devices of one machine where the entry names one: a configuration over several is judged as on a full node.
NODE = 8

# The name that the vendor's library answers, and the number of multiprocessors or compute units.
_VENDOR: dict[str, tuple[str, int]] = {
    "a100-80gb": ("NVIDIA A100-SXM4-80GB", 108),
    "h100-80gb": ("NVIDIA H100 80GB HBM3", 132),
    "h200-141gb": ("NVIDIA H200", 132),
    "b200": ("NVIDIA B200", 148),
    "l4": ("NVIDIA L4", 58),
    "mi300x": ("AMD Instinct MI300X", 304),
}
# Largest shared memory of a thread block in bytes, by compute capability (CUDA C++ programming guide, table of
# technical specifications, less the kilobyte that the system keeps).
_SHARED = {(8, 0): 166912, (8, 6): 101376, (8, 9): 101376, (9, 0): 232448, (10, 0): 232448, (12, 0): 101376}


def facts(device: Device) -> dict[str, Any]:
    """The facts that the agent presents.

    Args:
        device: A device of `matrices/devices.toml`.

    Returns:
        The keywords of the agent's `Facts`.
    """
    name, units = _VENDOR.get(device.name, (device.name, 108))
    said: dict[str, Any] = {"type": device.type, "name": name, "memory": device.memory_bytes, "units": units}
    if device.type == "cpu":
        return {**said, "name": "cpu", "count": 1}
    capability = device.capability or (8, 0)
    said |= {"capability": list(capability), "count": device.count if device.count > 1 else NODE}
    if device.type == "rocm":
        return {**said, "gfx": f"gfx{capability[0]}{capability[1]}2", "shared_memory": 65536, "toolkit": "7.0.0"}
    return {**said, "shared_memory": _SHARED.get(capability, 101376), "toolkit": "13.0"}
