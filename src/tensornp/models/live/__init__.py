"""List weights in memory, also packed, offloaded and computed ones. Start with `module.py`."""
