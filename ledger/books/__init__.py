"""ledger: books."""
