"""tests: ledger/books."""
