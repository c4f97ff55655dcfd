"""What runs inside the engine's interpreter: it presents a device to vLLM and asks it about configurations.

These files are handed to an interpreter in which Staticfire is not installed, and loaded there under a name of their
own. They use the standard library and what vLLM's environment has, import each other relatively, and keep to the
syntax of Python 3.10.
"""
