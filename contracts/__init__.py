"""What does the chain say? Contracts, payout tree, transactions, scanner and reconciliation."""
