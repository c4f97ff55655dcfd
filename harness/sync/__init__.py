"""Who holds which value: do all of them agree with the engine about what it settled at run time?"""
