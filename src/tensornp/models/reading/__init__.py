"""Read stored elements: indexing and signs. Start with `take.py`."""
