"""Configuration that explains itself: Typed -> Resolved -> Runtime. Imports no torch."""
