"""ledger: bundle."""
