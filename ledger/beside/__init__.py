"""ledger: beside."""
