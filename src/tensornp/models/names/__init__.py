"""Quote, search and match the names of weights."""
