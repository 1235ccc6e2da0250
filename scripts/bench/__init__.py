"""Benchmarks of semsearch against other tools and other recipes."""
