"""tests: node_reporter/executor."""
