"""Find aliases of a tensor and changes of its bytes.

In: tensors and arrays, and what a namespace reaches. Out: extents and relations, aliases, groups by storage,
fingerprints and changes.
Start with `extents.py`, then `aliases.py`.
"""
