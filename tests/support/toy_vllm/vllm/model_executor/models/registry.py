import functools
import importlib
import subprocess
import sys
from dataclasses import dataclass

from vllm.logger import logger


@dataclass(frozen=True)
class _LazyRegisteredModel:
    module_name: str

    def inspect_model_cls(self):
        return _run_in_subprocess(self.load_model_cls)

    def load_model_cls(self):
        return importlib.import_module(self.module_name).Model


@functools.lru_cache
def _try_inspect_model_cls(architecture, model):
    try:
        return model.inspect_model_cls()
    except Exception:  # noqa: BLE001 -- as the real one
        logger.exception("Error in inspecting model architecture '%s'", architecture)
        return None


@functools.lru_cache
def _try_load_model_cls(architecture, model):
    try:
        return model.load_model_cls()
    except Exception:  # noqa: BLE001 -- the same
        return None


def _run_in_subprocess(function):
    name = function.__self__.module_name if hasattr(function, "__self__") else ""
    code = f"import vllm, importlib; importlib.import_module({name!r}); print('fine')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Error raised in subprocess:\n{done.stderr}")
    return done.stdout.strip()


class _Registry:
    def __init__(self):
        names = {"PlainForCausalLM": "plain", "BrokenForCausalLM": "broken", "NeedyForCausalLM": "needy"}
        self.models = {
            name: _LazyRegisteredModel(f"vllm.model_executor.models.{module}") for name, module in names.items()
        }

    def get_supported_archs(self):
        return set(self.models)

    def inspect(self, architecture):
        found = _try_inspect_model_cls(architecture, self.models[architecture])
        if found is None:
            raise ValueError(f"Model architectures ['{architecture}'] failed to be inspected.")
        return found


ModelRegistry = _Registry()
