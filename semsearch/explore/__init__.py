"""Explores a collection: similar pairs, clusters, a map, and how encoders read its texts.

Each step is in a module of its own: `pairs`, `clusters`, `map`, `inspect`, `compare`, `export`.
"""
