"""Averaged word vectors: texts as the mean of their words, a baseline that needs no network."""
