"""The front end's side of an engine: one contract, in this process or over sockets. Imports no torch."""
