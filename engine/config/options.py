"""placeholder"""

KNOWN: dict[str, object] = {}
VERSIONS = ("0.27.1", "0.28.0", "0.33.0")
