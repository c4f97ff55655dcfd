"""Relations that hold between configurations of one engine."""
