"""Find aliases of a tensor and changes of its bytes.

In: tensors and arrays, and what a namespace reaches. Out: extents and relations, aliases, groups by storage,
fingerprints and changes. All of it is measured by address; what is not known is said to be not known.
Start with `extents.py`, then `relations.py`.
"""
