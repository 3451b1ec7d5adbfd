"""api: metering."""
