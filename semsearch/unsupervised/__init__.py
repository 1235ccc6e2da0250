"""Models made or improved here: pre-training, adaptation to a corpus, distillation."""
