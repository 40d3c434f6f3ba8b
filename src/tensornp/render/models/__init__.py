"""Models and checkpoints: the tree of weights, one weight, a scan, a comparison.

In: explorers, entries and tables. Out: text and HTML. Start with `weights.py`.
"""
