"""Searching an index: queries in, ranked hits out.

`ranking` is the way from a query to its hits; the others are steps of it.
"""
