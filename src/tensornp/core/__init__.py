"""What a tensor is, and how it becomes an array."""
