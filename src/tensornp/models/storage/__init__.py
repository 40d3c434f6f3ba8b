"""Find weights in the same bytes, and count each byte once."""
