"""The reference hybrid engine: an executable specification of vLLM V1's semantics on CPU."""
