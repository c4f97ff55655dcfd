"""Block pool, prefix hashing, and the hybrid coordinator over paged KV and recurrent state. Imports no torch."""
