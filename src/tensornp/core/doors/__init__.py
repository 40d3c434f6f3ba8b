"""Doors to other frameworks: tensors as arrays of JAX and CuPy, and back; each library is imported when asked for."""
