"""projections: pools."""
