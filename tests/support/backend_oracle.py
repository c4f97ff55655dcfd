"""Ask a release's own attention backend classes what they take; run by the interpreter that has the release.

Arguments: the probe's agent folder, the facts of a device as JSON, and block sizes, head sizes and dtypes as JSON.
Prints one JSON object: of every registered backend, why it cannot be loaded, or what its class methods answer.
"""

import contextlib
import importlib
import json
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from typing import Any


def load(member: Any) -> tuple[Any, str]:
    """The class, or why there is none."""
    try:
        return member.get_class(), ""
    except Exception as error:  # noqa: BLE001 -- an import can raise anything
        return None, f"{type(error).__name__}: {error}"


class Model:
    """A model configuration of the test's dense model: its heads, and nothing out of the ordinary."""

    hf_text_config = types.SimpleNamespace()

    def __init__(self, head: int) -> None:
        self.head = head

    def __getattr__(self, name: str) -> None:
        return None

    def get_head_size(self) -> int:
        return self.head

    def get_num_attention_heads(self, _parallel: Any) -> int:
        return 8

    def get_num_kv_heads(self, _parallel: Any) -> int:
        return 2


@contextlib.contextmanager
def a_model_with(head: int) -> Iterator[None]:
    """Make a configuration of which only the head size is typed the current one: some block sizes depend on it."""
    module: Any = importlib.import_module("vllm.config.vllm")
    sections = importlib.import_module("vllm.config")
    module._current_vllm_config = types.SimpleNamespace(
        model_config=Model(head),
        cache_config=sections.CacheConfig(),
        attention_config=sections.AttentionConfig(),
        parallel_config=sections.ParallelConfig(),
    )
    try:
        yield
    finally:
        module._current_vllm_config = None


def blocks_for(kind: Any, head: int, blocks: Any) -> list[int]:
    """The block sizes that a class takes for a model's head size."""
    with a_model_with(head):
        return [size for size in blocks if kind.supports_block_size(size)]


def asked(kind: Any, capability: Any, sizes: Any, torch: Any) -> dict[str, Any]:
    """What a class's own methods say, value by value."""
    blocks, heads, dtypes = sizes
    return {
        "mla": kind.is_mla(),
        "sparse": kind.is_sparse(),
        "capability": kind.supports_compute_capability(capability),
        "blocks": {str(head): blocks_for(kind, head, blocks) for head in heads},
        "heads": [size for size in heads if kind.supports_head_size(size)],
        "dtypes": [name for name in dtypes if kind.supports_dtype(getattr(torch, name))],
        "cache": kind.supports_kv_cache_dtype("auto"),
    }


def main(agent: str, facts: dict[str, Any], sizes: Any) -> dict[str, Any]:
    package = types.ModuleType("_staticfire_agent")
    package.__path__ = [agent]
    sys.modules["_staticfire_agent"] = package
    device: Any = importlib.import_module("_staticfire_agent.device")
    packages = importlib.import_module("_staticfire_agent.packages")
    scratch = tempfile.mkdtemp()
    importlib.import_module("_staticfire_agent.judge").scratch_environment(scratch, scratch)
    given = device.Facts(facts)
    finder, _ = importlib.import_module("_staticfire_agent.main").prepare(given)
    importlib.import_module("vllm")
    platform = device.install_platform(given)
    registry = importlib.import_module("vllm.v1.attention.backends.registry")
    torch = importlib.import_module("torch")
    said = {}
    with packages.Packages(finder, given.type).presented():
        for member in registry.AttentionBackendEnum:
            kind, why = load(member)
            said[member.name] = {"failed": why} if why else asked(kind, platform.get_device_capability(), sizes, torch)
        states = {member.name: load(member)[1] for member in registry.MambaAttentionBackendEnum}
    return {"attention": said, "state": states}


if __name__ == "__main__":
    told = os.dup(1)
    os.dup2(2, 1)  # the engine prints as it likes
    answer = main(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))
    with os.fdopen(told, "w") as out:
        json.dump(answer, out)
