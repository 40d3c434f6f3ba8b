"""Files of torch.save, of all ages: a pickle that is looked through, and storages beside it.

In: a file. Out: entries and metadata. Start with `file.py`.
"""
