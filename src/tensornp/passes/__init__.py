"""What a forward and a backward pass did, call by call: `recording` follows, `verdict` concludes from frozen records.

In: modules that are called in a block. Out: `FollowedPass`, which holds no tensor.
"""
