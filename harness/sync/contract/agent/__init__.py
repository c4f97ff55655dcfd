"""What runs inside the engine's interpreter: it finds the response and drives the engine's own code with it.

Like the probe's agent these files need nothing but the standard library and what the engine's environment has, import
each other relatively, and keep to the syntax of Python 3.10.
"""
