"""Averaged word vectors: texts as the mean of their words, a baseline without a neural network."""
