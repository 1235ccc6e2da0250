"""Indexing: compare documents with the index, split them, encode their passages, write them."""
