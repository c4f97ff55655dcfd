"""Reading checkpoints: every tensor accounted for, nothing left uninitialised."""
