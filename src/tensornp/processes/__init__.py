"""What the ranks of a job hold, each asked by itself: a client asks, a process answers with plain tuples and bytes.

In: a client of ipyparallel, or another transport. Out: `RankWeights`, `RankStats`, `Drift`. Not called `ranks`, which
would hide `tnp.ranks`. Start with `ranks.py`; `answering.py` is what runs in the other processes.
"""
