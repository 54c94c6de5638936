"""What may be wrong with a set-up, looked at and tried out: `wirelint doctor`."""
