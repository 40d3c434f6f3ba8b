"""Stored codes and the values that are meant: scaled blocks, affine schemes, packed formats.

In: entries of codes and scales, and what a configuration says of them. Out: entries that give the meant values, or say
true counts where they are not read. Start with `codec.py`, then `layouts.py`.
"""
