"""benchmarks: log."""
