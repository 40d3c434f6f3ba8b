"""Look at the ranks of a job, each asked by itself; answers are plain tuples.

In: a client of ipyparallel, or another transport. Out: `RankWeights`, `RankStats`, `Drift`. Not called `ranks`, which
would hide `tnp.ranks`. Start with `ranks.py`; `answering.py` is what runs in the other processes.
"""
