"""tests: node_reporter/programs."""
