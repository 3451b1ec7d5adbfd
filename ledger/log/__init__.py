"""ledger: log."""
