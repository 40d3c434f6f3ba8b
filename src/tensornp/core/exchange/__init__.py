"""Convert tensors to arrays of JAX and CuPy, and arrays of any library to tensors."""
