"""Everything a user touches: check, explain, matrix, run, and their reports."""
