"""A live audit of an installed vLLM, by a script that runs in the interpreter that has it."""
