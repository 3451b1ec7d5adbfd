"""api: process."""
