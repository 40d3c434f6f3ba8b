"""Figures and pictures: a small histogram, heat maps, images, their colours and legends.

In: counts, heat maps and pixels. Out: PNG, text blocks, figures of matplotlib. Start with `plot.py`.
"""
