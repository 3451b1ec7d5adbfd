"""tests: api/ingest."""
