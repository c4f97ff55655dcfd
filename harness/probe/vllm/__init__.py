"""The probe of an installed vLLM, run by an interpreter of its own."""
