"""A small engine with the seams of the real one."""

import importlib.util

importlib.util.find_spec("torch")  # asking for a module is not importing it: hooks must survive this
__version__ = "9.9.9"
