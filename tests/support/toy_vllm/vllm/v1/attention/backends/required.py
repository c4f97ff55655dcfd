from absent_kernels.decode import BatchDecode

from vllm.v1.attention.backend import AttentionBackend


class RequiredBackend(AttentionBackend):
    """Needs a package that the engine's distribution requires, and that this machine lacks."""

    wrapper = BatchDecode
    heads = (64, 128, 256)
