"""Draws configurations, asks our rules and an installed engine about each, and shows where the two disagree."""
