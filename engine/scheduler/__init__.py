"""What to run next: pure decisions on values. Imports no torch."""
