"""The failures of a build by root cause: what they share, what mends them, what to try again."""
