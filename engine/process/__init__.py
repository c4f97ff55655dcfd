"""Processes of the engine: how they are started, watched and ended. Imports no torch."""
