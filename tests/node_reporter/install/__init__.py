"""tests: node_reporter/install."""
