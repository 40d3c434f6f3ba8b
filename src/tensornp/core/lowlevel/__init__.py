"""Hold the private names of torch, leave its modes, and format text.

Start with `modes.py`: all code that reads values runs outside of modes.
"""
