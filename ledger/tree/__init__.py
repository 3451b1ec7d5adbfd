"""ledger: tree."""
