"""Remember displayed and converted tensors, without IPython; nothing is kept alive; start with `ledger.py`."""
