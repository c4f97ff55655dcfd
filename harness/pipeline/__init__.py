"""Buildkite pipelines: planned as values, held to every limit, written, explained, compared, run on one machine."""
