"""tests: node_reporter/agent."""
