"""Checkpoints of torch.distributed.checkpoint: tensors in chunks, over the files of many ranks.

In: a folder, or the files that say what lies in it. Out: entries, each of all its chunks.
Start with `checkpoint.py`.
"""
