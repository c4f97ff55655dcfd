"""How people type a value."""


def spelled(value: object) -> str:
    """A value of an axis as TOML and `--select` spell it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
