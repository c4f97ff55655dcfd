"""The pytest plugin: cells of a matrix as tests, runners as fixtures, guards against tests that prove nothing.

Loaded by pytest through the entry point `staticfire` (module `entry`); what suites import is in `helpers` and
`strategies`. Importing any of it brings in neither torch nor transformers.
"""
