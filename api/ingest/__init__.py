"""api: ingest."""
