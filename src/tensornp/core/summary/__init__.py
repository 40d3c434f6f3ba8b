"""Gather all facts of a view, with no tensor inside.

In: a tensor, a container or a survey, and the options. Out: frozen records, which every renderer reads.
Start with `card.py`.
"""
