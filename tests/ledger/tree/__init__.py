"""tests: ledger/tree."""
