"""Show many weights at once: as lines of a tree or a list. Start with `outline.py`."""
