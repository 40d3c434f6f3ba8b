"""The IPython front: extension, formatter, magics, completion and configuration."""
