"""Trees of tensors: models, state dicts and checkpoints."""
