"""How a tensor becomes an array, and a NumPy array a tensor.

In: the facts of a tensor, and a wish. Out: a `ConversionPlan`, decided without torch; then the array that it promises.
One module, `to_numpy.py`, turns a tensor into an array.
Start with `plan.py`.
"""
