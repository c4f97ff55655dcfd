"""Read an engine's source: which values that are settled after start-up reach nobody in another process?"""
