"""projections: funds."""
