"""tests: ledger/bundle."""
