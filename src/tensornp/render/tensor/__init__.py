"""One tensor or array: card, badges, receipt, aliases, changes.

In: records of `core/summary/`. Out: text and HTML. Start with `card.py`.
"""
