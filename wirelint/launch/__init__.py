"""A command with a proxy of its own: what `wirelint run` does, and `wirelint doctor` tries out."""
