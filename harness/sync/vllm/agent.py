"""Runs inside the interpreter that has vLLM; needs nothing but it and the standard library.

Started as a script with two arguments: a JSON file with the model and the keywords, and where to write the answer.
The same file is a general plug-in of vLLM, which loads it in every process of the engine: there it gives the engine
core and the workers a method that tells their own configuration. Nothing of the engine is changed but for that.
"""

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

METHOD = "staticfire_view"
SECTIONS = {
    "model": "model_config",
    "cache": "cache_config",
    "scheduler": "scheduler_config",
    "parallel": "parallel_config",
}
"""Name in the report -> attribute of `VllmConfig`."""

OWN = frozenset({
    "parallel.rank", "parallel.local_rank", "parallel.data_parallel_rank_local", "parallel.data_parallel_index",
    "parallel.node_rank", "parallel.nnodes",
})  # fmt: skip
"""What is different in every process by its meaning."""


def flat(vllm_config: Any) -> dict[str, Any]:
    """`section.field` -> value, for every public field that is a plain value, or has a short name as dtypes do."""
    found: dict[str, Any] = {}
    for section, attribute in SECTIONS.items():
        config = getattr(vllm_config, attribute, None)
        for name, value in sorted(_attributes(config).items()):
            field = f"{section}.{name}"
            if name.startswith("_") or field in OWN:
                continue
            plain = getattr(value, "value", value)  # of an enum
            if plain is None or isinstance(plain, str | int | float):
                found[field] = plain
            elif type(value).__name__ == "dtype":
                found[field] = str(value).removeprefix("torch.")
    return found


def _attributes(config: Any) -> Mapping[str, Any]:
    return getattr(config, "__dict__", {})


def _view(self: Any) -> str:
    """The method that the plug-in adds; JSON, since text passes every encoder."""
    return json.dumps(flat(self.vllm_config))


def register() -> None:
    """What vLLM calls in every process; safe to call again."""
    for module, name in (("vllm.v1.engine.core", "EngineCore"), ("vllm.v1.worker.worker_base", "WorkerBase")):
        setattr(getattr(import_module(module), name), METHOD, _view)


def look(model: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Start vLLM and ask everyone.

    Args:
        model: Folder of a checkpoint, or an id.
        typed: Keywords of `LLM`.
    """
    vllm: Any = import_module("vllm")
    if not getattr(import_module("vllm.platforms").current_platform, "device_type", ""):
        raise RuntimeError("it finds no device here that it can run on, and a live audit runs it")
    register()  # an engine core in this process may be made before plug-ins are loaded
    llm = vllm.LLM(model=model, **{"disable_log_stats": False, **typed})
    engine = llm.llm_engine
    return {
        "version": vllm.__version__,
        "front_end": flat(engine.vllm_config),
        "core": _core(engine.engine_core),
        "workers": [json.loads(text) for text in llm.collective_rpc(METHOD)],
        "metrics": _metrics(),
        "ready": _ready_fields(),
    }


def _core(client: Any) -> dict[str, Any]:
    """The core's own configuration, from another process or from this one."""
    if hasattr(client, "call_utility"):
        found: dict[str, Any] = json.loads(client.call_utility(METHOD))
        return found
    return flat(client.engine_core.vllm_config)


def _metrics() -> str:
    prometheus: Any = import_module("prometheus_client")
    page: bytes = prometheus.generate_latest(prometheus.REGISTRY)
    return page.decode()


def _ready_fields() -> list[str]:
    """What this version's ready response carries."""
    response = getattr(import_module("vllm.v1.engine"), "EngineCoreReadyResponse", None)
    return list(getattr(response, "__annotations__", {}))


def main(question: str, answer: str) -> None:
    """Answer one question; a failure is an answer too."""
    with open(question, encoding="utf-8") as file:  # noqa: PTH123 -- any vLLM's Python
        asked = json.load(file)
    try:
        told = look(asked["model"], asked["typed"])
    except BaseException as error:  # noqa: BLE001 -- vLLM may even call sys.exit
        told = {"error": _innermost(error), "version": _version()}
    with open(answer, "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(told, file)


def _innermost(error: BaseException) -> str:
    """The first cause that says anything, in one line: vLLM wraps what matters."""
    said = type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
        if lines:
            said = f"{type(cause).__name__}: {lines[0]}"
        cause = cause.__cause__
    return said


def _version() -> str | None:
    module = sys.modules.get("vllm")
    return getattr(module, "__version__", None)


if __name__ == "__main__":
    main(*sys.argv[1:3])
