"""benchmarks: epochs."""
