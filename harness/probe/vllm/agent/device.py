"""Present a device that this machine does not have: to torch, to the vendor's library, to Triton and to the engine."""

import importlib
import sys
import types
from typing import Any

from .standin import Anything, PostImport

GIB = 2**30


class Facts:
    """The device to present.

    Attributes:
        type: `cuda`, `rocm` or `cpu`.
        name: What the vendor's driver calls it.
        capability: Compute capability, or the first digits of the gfx target.
        memory: Bytes of one device.
        count: Devices of the machine; raised for a question that needs more, since too few devices are the
            machine's fault and not the configuration's.
        units: Multiprocessors or compute units.
        shared_memory: Largest shared memory of one thread block, in bytes.
        gfx: Target of a ROCm device.
        toolkit: Version of CUDA or ROCm.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        """Read the facts as the client sends them."""
        self.type: str = facts["type"]
        self.name: str = facts["name"]
        self.capability: tuple[int, int] = tuple(facts.get("capability") or (0, 0))
        self.memory: int = facts["memory"]
        self.count: int = facts.get("count", 1)
        self.units: int = facts.get("units", 1)
        self.shared_memory: int = facts.get("shared_memory", 65536)
        self.gfx: str = facts.get("gfx", "")
        self.toolkit: str = facts.get("toolkit", "")
        self.least_count = self.count

    def properties(self) -> types.SimpleNamespace:
        """What `torch.cuda.get_device_properties` answers."""
        warp = 64 if self.type == "rocm" else 32
        return types.SimpleNamespace(
            name=self.name,
            major=self.capability[0],
            minor=self.capability[1],
            total_memory=self.memory,
            multi_processor_count=self.units,
            warp_size=warp,
            max_threads_per_multi_processor=2048,
            regs_per_multiprocessor=65536,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=self.shared_memory,
            shared_memory_per_multiprocessor=self.shared_memory,
            L2_cache_size=50 * 2**20,
            gcnArchName=self.gfx,
            is_integrated=0,
            is_multi_gpu_board=0,
            uuid="00000000-0000-0000-0000-000000000000",
        )


def present(facts: Facts, hooks: PostImport) -> None:
    """Arrange that whatever is imported from now on sees the device."""
    if facts.type == "cpu":
        return
    hooks.after("torch", lambda torch: _present_torch(torch, facts))
    hooks.after("vllm.third_party.pynvml", lambda nvml: _present_nvml(nvml, facts))
    if facts.type == "rocm":
        sys.modules["amdsmi"] = _amdsmi(facts)
    hooks.after("triton.runtime.driver", lambda module: _present_triton(module, facts))


def _present_torch(torch: Any, facts: Facts) -> None:
    cuda = torch.cuda
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: facts.count,
        "_device_count_nvml": lambda: facts.count,
        "_device_count_amdsmi": lambda: facts.count,
        "current_device": lambda: 0,
        "get_device_capability": lambda *_, **__: facts.capability,
        "get_device_name": lambda *_, **__: facts.name,
        "get_device_properties": lambda *_, **__: facts.properties(),
        "mem_get_info": lambda *_, **__: (facts.memory, facts.memory),
        "is_bf16_supported": lambda *_, **__: facts.type == "rocm" or facts.capability >= (8, 0),
        "can_device_access_peer": lambda *_, **__: True,
        "is_current_stream_capturing": lambda: False,
    }
    for name, answer in answers.items():
        setattr(cuda, name, answer)
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available = lambda *_, **__: True
        torch.accelerator.device_count = lambda: facts.count
        torch.accelerator.current_device_index = lambda: 0
        torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")
    if facts.type == "cuda":
        torch.version.cuda = torch.version.cuda or facts.toolkit
    else:
        torch.version.hip = getattr(torch.version, "hip", None) or facts.toolkit
        torch.version.cuda = None


def _present_nvml(nvml: Any, facts: Facts) -> None:
    if facts.type != "cuda":
        return
    memory = types.SimpleNamespace(total=facts.memory, free=facts.memory, used=0)
    answers: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: facts.count,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetHandleByUUID": lambda _: 0,
        "nvmlDeviceGetIndex": lambda handle: handle,
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle:08d}",
        "nvmlDeviceGetName": lambda _: facts.name,
        "nvmlDeviceGetMemoryInfo": lambda *_, **__: memory,
        "nvmlDeviceGetCudaComputeCapability": lambda _: facts.capability,
        "nvmlDeviceGetP2PStatus": lambda *_: nvml.NVML_P2P_STATUS_OK,
        "nvmlSystemGetDriverVersion": lambda: "580.00",
        "nvmlSystemGetCudaDriverVersion": lambda: 13000,
    }
    for name, answer in answers.items():
        setattr(nvml, name, answer)


def _amdsmi(facts: Facts) -> types.ModuleType:
    """A module that answers as AMD's management library does."""
    module = types.ModuleType("amdsmi")
    market = {"market_name": facts.name, "device_id": "0x74a1", "target_graphics_version": facts.gfx}
    names: dict[str, Any] = {
        "AmdSmiException": type("AmdSmiException", (Exception,), {}),
        "AmdSmiMemoryType": types.SimpleNamespace(VRAM=0, VIS_VRAM=1, GTT=2),
        "amdsmi_init": lambda *_: None,
        "amdsmi_shut_down": lambda: None,
        "amdsmi_get_processor_handles": lambda: list(range(facts.count)),
        "amdsmi_get_gpu_asic_info": lambda _: market,
        "amdsmi_get_gpu_device_uuid": lambda handle: f"GPU-{handle:08d}",
        "amdsmi_get_gpu_memory_total": lambda *_: facts.memory,
        "amdsmi_topo_get_link_type": lambda *_: {"hops": 1, "type": 2},
        "amdsmi_topo_get_numa_node_number": lambda _: 0,
    }
    for name, value in names.items():
        setattr(module, name, value)
    return module


class _Driver(Anything):
    """Triton's driver of the presented device, as far as it can be asked without one."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def get_current_target(self) -> Any:
        """The compilation target."""
        target = importlib.import_module("triton.backends.compiler").GPUTarget
        if self._facts.type == "rocm":
            return target("hip", self._facts.gfx, 64)
        major, minor = self._facts.capability
        return target("cuda", major * 10 + minor, 32)

    def get_current_device(self) -> int:
        """The first device."""
        return 0

    def get_device_capability(self, *_: Any) -> tuple[int, int]:
        """Compute capability."""
        return self._facts.capability

    def get_active_torch_device(self) -> Any:
        """The same as torch's device."""
        return importlib.import_module("torch").device("cuda", 0)

    def get_device_interface(self) -> Any:
        """The module of torch for the device."""
        return importlib.import_module("torch").cuda

    @property
    def utils(self) -> Any:
        """Facts that kernels ask for when they are tuned."""
        facts = self._facts
        properties = {
            "max_shared_mem": facts.shared_memory,
            "max_num_regs": 65536,
            "multiprocessor_count": facts.units,
            "warpSize": 64 if facts.type == "rocm" else 32,
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 2_000_000,
            "mem_bus_width": 4096,
        }
        return types.SimpleNamespace(get_device_properties=lambda *_: properties)


def _present_triton(module: Any, facts: Facts) -> None:
    driver = _Driver(facts)
    module.driver.set_active(driver)
    backends = importlib.import_module("triton.backends").backends
    mine = "amd" if facts.type == "rocm" else "nvidia"
    for name, backend in backends.items():
        if backend.driver is not None and name in ("amd", "nvidia"):
            backend.driver.is_active = staticmethod(lambda active=name == mine: active)


def install_platform(facts: Facts) -> Any:
    """Give the engine the platform of the device; return it.

    The engine's own class of that platform does the answering, over the vendor library that is presented.
    """
    platforms: Any = importlib.import_module("vllm.platforms")
    module = importlib.import_module(f"vllm.platforms.{facts.type}")
    base = getattr(module, {"cuda": "CudaPlatform", "rocm": "RocmPlatform", "cpu": "CpuPlatform"}[facts.type])
    answers: dict[str, Any] = {
        "get_device_total_memory": classmethod(lambda _, *__, **___: facts.memory),
        "log_warnings": classmethod(lambda _: None),
    }
    if facts.type != "cpu":
        answers["device_count"] = classmethod(lambda _: facts.count)
        answers["num_compute_units"] = classmethod(lambda _, *__, **___: facts.units)
        answers["get_device_name"] = classmethod(lambda _, *__, **___: facts.name)
    presented = type(base.__name__, (base,), answers)
    platforms._current_platform = presented()  # noqa: SLF001 -- the engine resolves it once, from the machine
    return platforms._current_platform  # noqa: SLF001
