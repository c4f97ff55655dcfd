"""Tensor parallelism: which part of the model a rank holds, and how ranks add up what they computed."""
