"""marimo: tensors, records and containers show as in Jupyter, and explorers and passes are live.

Its notebooks run without IPython, so that there are no magics; a name is bound by assignment alone.
"""
