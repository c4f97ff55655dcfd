"""Kernels compiled for GPUs that are not there, and held to what they took of each GPU before. Imports no torch.

`compile` asks two child processes (`child`) for the `Resources` that `read` finds in a binary, and remembers them by
content; `file` keeps what is allowed, one file a version of Triton; `judge` compares the two.
"""
