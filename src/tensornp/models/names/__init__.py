"""The names of weights: as they are given, quoted, searched and matched.

In: keys and paths of what holds weights, and what somebody types. Out: names, and a function that tells which match.
No weight comes here. Start with `naming.py`.
"""
