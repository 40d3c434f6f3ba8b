"""Read checkpoints of torch.distributed.checkpoint. Start with `checkpoint.py`."""
