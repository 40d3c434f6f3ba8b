"""Pictures: histograms, heat maps, images, their colours and legends; start with `stats_line.py`."""
