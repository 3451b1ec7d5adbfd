"""domain: metering."""
