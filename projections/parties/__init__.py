"""projections: parties."""
