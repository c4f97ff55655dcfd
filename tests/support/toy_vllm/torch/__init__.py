"""As much of torch as the agent touches."""

import types

from . import _ops

__version__ = "0.0"
cuda = types.SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
version = types.SimpleNamespace(cuda=None, hip=None)
accelerator = types.SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
_C = types.SimpleNamespace(_dispatch_get_all_op_names=lambda: ["aten::add"])
ops = _ops.Ops()


def _register_fake(name):
    def decorate(function):
        raise RuntimeError(f"operator {name} does not exist")

    return decorate


library = types.SimpleNamespace(register_fake=_register_fake)


def device(*names):
    return names
