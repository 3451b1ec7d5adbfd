"""tests: node_reporter/meter."""
