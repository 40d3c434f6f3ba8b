"""Describe one weight, and read its values on request. Start with `entry.py`."""
