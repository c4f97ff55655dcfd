import absent_optional_kernels  # noqa: F401

from vllm.v1.attention.backend import AttentionBackend


class OptionalBackend(AttentionBackend):
    """Needs a package that a user may install."""

    sizes = (16, 40)
