"""Which rules are in force for which exchange, how severe they are, and which fixes are allowed."""
