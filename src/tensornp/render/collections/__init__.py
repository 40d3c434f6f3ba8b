"""Many tensors: containers, the table of memory, reports; start with `container.py`."""
