"""Models and checkpoints: the tree of weights, one weight, a scan, a comparison; start with `weights.py`."""
