"""Reports of a check: a report in, text out. One module and one line in the registry for each."""
