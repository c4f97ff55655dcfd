"""Where the ranks of an engine run: in this process, or each in its own. Imports no torch."""
