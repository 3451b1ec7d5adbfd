"""projections: metering."""
