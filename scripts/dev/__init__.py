"""Soaking and fuzzing."""
