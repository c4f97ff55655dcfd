"""What `staticfire kernels` reports: kernels held to their budgets, and the least time of an op on a device."""
