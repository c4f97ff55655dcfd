"""Times every op on the device at hand, each only after it was compared: `python -m staticfire.kernels.bench`."""
