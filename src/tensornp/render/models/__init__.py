"""Models and checkpoints: tree of weights, one weight, scan and comparison; start with `weights.py`."""
