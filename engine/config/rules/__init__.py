"""The rule catalogue: one file per rule, listed in `registry`."""
