"""A job that cannot be imported."""

raise RuntimeError("this module cannot be imported")
