"""Decode or mark stored codes: scaled blocks, affine schemes, packed formats. Start with `layouts.py`."""
