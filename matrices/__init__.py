"""Data: models, devices and matrices, read by the harness alone as package resources."""
