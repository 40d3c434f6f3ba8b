"""List the weights of models in memory and of checkpoints on disk. Start with `weights.py`."""
