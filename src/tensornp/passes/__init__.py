"""What a forward and a backward pass did, call by call; what is concluded is a pure function of frozen records.

In: modules that are called in a block. Out: `FollowedPass`, which holds no tensor.
"""
