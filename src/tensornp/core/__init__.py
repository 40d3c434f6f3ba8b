"""Read tensors, find their aliases, convert and summarize them.

In: tensors, arrays, namespaces. Out: frozen records and arrays. A room imports those before it in this line:
lowlevel -> tensor -> namespace -> memory -> convert -> values -> summary.
Start with `tensor/facts.py`, the record that every decision is made from.
"""
