import importlib

from vllm import platforms


def get_attn_backend(head_size, dtype, block_size):
    path = platforms._current_platform.get_attn_backend_cls(head_size, dtype, block_size)
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
