"""Private names of torch, modes, and text; nothing here knows tensors of tensornp.

In: any object, an address, a function. Out: what it is and holds, its bytes, the function outside of every mode.
Each private name of torch has another way beside it, and each raw read one switch.
Start with `modes.py`, in which all that touches values runs.
"""
