"""projections: audit."""
