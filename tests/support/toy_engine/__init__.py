"""The engine's bookkeeping on a toy model in plain Python: pages hold tokens, states are folds over tokens."""
