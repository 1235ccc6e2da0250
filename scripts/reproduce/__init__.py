"""Reproduces the figures of README.md and RESULTS.md."""
