"""Start engines, say what became of every value, serve their metrics."""
