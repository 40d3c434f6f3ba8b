"""One tensor or array: card, badges, receipt and aliases; start with `card.py`."""
