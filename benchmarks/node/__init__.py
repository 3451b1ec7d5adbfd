"""benchmarks: node."""
