"""projections: trust."""
