"""Remember displayed and converted tensors, and keep none alive; start with `ledger.py`."""
