"""benchmarks: fleet."""
