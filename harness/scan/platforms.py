"""Checks of the machine that sources make, answered for the machine that the scan was told of."""

from typing import Any

from staticfire.harness.scan.base import ScanConfig, Unknown
from staticfire.harness.scan.values import Capability, External

_CHECKS = {
    "is_cuda": ("cuda",),
    "is_rocm": ("rocm",),
    "is_xpu": ("xpu",),
    "is_cpu": ("cpu",),
    "is_cuda_alike": ("cuda", "rocm"),
    "is_tpu": (),
    "is_neuron": (),
    "is_hpu": (),
    "is_out_of_tree": (),
    "is_unspecified": (),
}
_AVAILABLE = {"cuda": ("cuda", "rocm"), "xpu": ("xpu",), "hpu": (), "mps": (), "npu": ()}


def call(function: External, args: list[Any], config: ScanConfig) -> Any:
    """What a platform check answers; `NotImplemented` if it is none.

    Args:
        function: What is called.
        args: Its positional arguments.
        config: The machine.
    """
    last = function.last
    if config.platform is None and (last in _CHECKS or last == "is_available"):
        return Unknown("platform", function.name)
    if last in _CHECKS and "platform" in function.name:
        return config.platform in _CHECKS[last]
    if last == "is_available" and function.name.startswith("torch."):
        kind = function.name.split(".")[-2]
        return config.platform in _AVAILABLE[kind] if kind in _AVAILABLE else Unknown("platform", function.name)
    if last in {"device_count", "cuda_device_count_stateless"}:
        return config.device_count if config.device_count is not None else Unknown("platform", function.name)
    return _capability(last, args, config)


def _capability(name: str, args: list[Any], config: ScanConfig) -> Any:
    have = config.capability
    if name == "get_device_capability":
        return Capability(*have) if have else Unknown("platform", name)
    if name not in {"has_device_capability", "is_device_capability", "is_device_capability_family"}:
        return NotImplemented
    if have is None or config.platform != "cuda" or not args:
        return Unknown("platform", name) if config.platform in {"cuda", "rocm", None} else False
    wanted = args[0]
    if isinstance(wanted, int):
        wanted = divmod(wanted, 10)
    if not (isinstance(wanted, tuple) and len(wanted) == 2 and all(isinstance(item, int) for item in wanted)):
        return Unknown("platform", name)
    if name == "has_device_capability":
        return have >= tuple(wanted)
    return have[0] == wanted[0] if name.endswith("family") else have == tuple(wanted)


def attribute(name: str, config: ScanConfig) -> Any:
    """The value of an attribute that says what the machine is; `NotImplemented` if it is none."""
    platform = config.platform
    if name in {"torch.version.hip", "torch.version.cuda", "torch.version.xpu"}:
        kind = {"hip": "rocm", "cuda": "cuda", "xpu": "xpu"}[name.rpartition(".")[2]]
        if platform is None:
            return Unknown("platform", name)
        return None if platform != kind else Unknown("version", name)
    if name.endswith(("current_platform.device_type", "current_platform.device_name")):
        return {"rocm": "cuda", None: Unknown("platform", name)}.get(platform, platform)
    if name == "sys.platform":
        return "linux"
    if name == "os.name":
        return "posix"
    return NotImplemented
