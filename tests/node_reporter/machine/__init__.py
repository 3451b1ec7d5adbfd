"""tests: node_reporter/machine."""
