import enum
import importlib


class AttentionBackendEnum(enum.Enum):
    COMPILED = "vllm.v1.attention.backends.compiled.CompiledBackend"
    REQUIRED = "vllm.v1.attention.backends.required.RequiredBackend"
    OPTIONAL = "vllm.v1.attention.backends.optional.OptionalBackend"
    BROKEN = "vllm.v1.attention.backends.broken.BrokenBackend"

    def get_class(self):
        module, _, name = self.value.rpartition(".")
        return getattr(importlib.import_module(module), name)
