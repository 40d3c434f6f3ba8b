"""Follow the calls of a block: `follow` records them, `findings` concludes from the record.

In: modules that are called in a block. Out: `FollowedPass`, which holds no tensor.
"""
