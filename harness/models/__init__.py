"""Models, devices and prompts by name, and the tiny checkpoints made on demand."""
