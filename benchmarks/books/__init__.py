"""benchmarks: books."""
