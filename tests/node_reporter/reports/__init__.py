"""tests: node_reporter/reports."""
