"""projections: fleet."""
