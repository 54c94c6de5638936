"""Tests of wirelint.policy."""
