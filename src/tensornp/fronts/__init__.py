"""Front ends: one folder for each program that shows tensors."""
