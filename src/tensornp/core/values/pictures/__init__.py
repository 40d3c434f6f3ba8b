"""Pixels: heat maps of planes, and images; drawing them is not done here.

In: a tensor, and how it is laid out. Out: numbers for pixels, and limits of their colours. Start with `picture.py`.
"""
