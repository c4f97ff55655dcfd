import vllm._C_compiled  # noqa: F401
from vllm.v1.attention.backend import AttentionBackend


class CompiledBackend(AttentionBackend):
    """Needs the engine's own extension, which every build of it has."""

    heads = (64, 128)
