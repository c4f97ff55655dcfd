"""Guards against tests that prove nothing or spoil others. Each is one file and one line in `registry`."""
