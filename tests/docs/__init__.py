"""What the documentation shows."""
