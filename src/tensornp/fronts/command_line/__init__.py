"""The command line: it has neither IPython nor widgets, and torch only if a format needs it."""
