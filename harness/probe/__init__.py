"""Ask an engine about a configuration, without a GPU and without starting it."""
