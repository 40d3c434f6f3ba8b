"""Other frameworks: tensors as arrays of JAX and CuPy, and the way back.

In: a tensor, or an array of any library. Out: the other, and a plan that says beforehand whether memory is shared.
Each library is imported when it is asked for.
Start with `handover.py`, which decides from facts alone.
"""
