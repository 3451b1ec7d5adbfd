"""tests: node_reporter/gpus."""
