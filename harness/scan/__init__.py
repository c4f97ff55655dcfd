"""Read engine configurations out of tests, scripts and YAML. Nothing that is read is ever imported or run."""
