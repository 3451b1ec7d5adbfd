"""projections: corrections."""
