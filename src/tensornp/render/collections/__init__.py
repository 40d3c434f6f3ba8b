"""Many tensors: containers, the table of memory, reports.

In: their records. Out: text and HTML. Start with `container.py`.
"""
