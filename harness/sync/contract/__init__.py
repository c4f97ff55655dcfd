"""The contract of a ready response: properties that an engine's own classes are held to, without starting it."""
