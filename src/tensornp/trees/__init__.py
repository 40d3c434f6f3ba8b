"""Models and checkpoints: a file for each source, a file for each format."""
