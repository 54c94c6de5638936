"""A command with a private proxy: the parts of `wirelint run`, `wirelint doctor` and `wirelint demo`."""
