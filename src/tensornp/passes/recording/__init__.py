"""What is remembered while a pass is followed: hooks, a mode, and what each tensor held."""
