"""What rules know about the world: small pure modules, each with one subject.

Rules import from here; nothing in here imports a rule.
"""
