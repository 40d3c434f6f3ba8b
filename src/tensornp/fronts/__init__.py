"""The programs in which tensors are looked at, a folder for each."""
