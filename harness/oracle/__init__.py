"""Whether an engine computed what it should have: references, comparators, relations, verdicts."""
