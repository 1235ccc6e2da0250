"""Transformers on OpenVINO: converted once, then run on a CPU without torch."""
