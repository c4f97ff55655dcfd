"""Namespaces of operators; none is registered."""


class _OpNamespace:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        raise AttributeError(name)


class Ops:
    def __init__(self):
        self._C = _OpNamespace("_C")
        self.aten = _OpNamespace("aten")

    def load_library(self, path):
        raise OSError(f"cannot load {path}")
