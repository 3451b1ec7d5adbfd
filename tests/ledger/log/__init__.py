"""tests: ledger/log."""
