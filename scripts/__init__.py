"""Scripts beside the package: benchmarks, reproduction of results, maintenance."""
