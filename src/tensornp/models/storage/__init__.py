"""Which weights lie in the same bytes, and how much all of them take.

In: entries. Out: totals that count each byte once, and relations: tied, the same elements, views of one storage.
Start with `totals.py`.
"""
