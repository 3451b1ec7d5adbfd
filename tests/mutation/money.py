"""The modules whose mutants are counted, each with the money or the proof that hangs on it, and the
tests that run on them without a server.
"""

from __future__ import annotations

MODULES = {
    "domain.money": "units, credits and rounding: every other module counts with these",
    "domain.gpu_time": "time times price: what a lease is charged",
    "domain.prices.tariff": "which rates hold when",
    "domain.prices.charge_split": "who gets which part of a charge, and who the remainder",
    "domain.prices.device_fee": "the fee of a device by time",
    "domain.prices.token_burn": "how much TOKEN a credit costs",
    "domain.metering.counting": "which reported time counts, once",
    "domain.leasing.accrual": "what an hour of a lease costs, and what goes back at its end",
    "domain.lease.accrual_steps": "the same charge, explained step by step",
    "domain.lease.funds": "which deposits pay, in which order",
    "domain.lease.escrow": "what is held for a lease, and how long it lasts",
    "domain.lease.shared_escrow": "when leases that draw on one escrow end together",
    "domain.leasing.escrow_sharing": "who pays into a shared escrow, and who gets it back",
    "domain.funds.funding": "whose credits may be spent, least regretted first",
    "domain.funds.budget": "what a project, a key or a payer may spend in a month",
    "domain.funds.payment": "money that comes in, and is taken back or refunded",
    "domain.funds.debt": "what is owed after a reversal, and who repays it",
    "domain.income.maturity": "when earnings become payable, and to whom they are swept",
    "domain.income.cash_out": "how earnings leave as money",
    "domain.income.adjustment": "what is corrected in past charges",
    "domain.income.region_sharing": "how a region's pool is shared out",
    "domain.income.region_waterfall": "in which order what a region earned is shared",
    "domain.income.invoice": "what an invoice adds up to, with tax",
    "domain.corrections.dispute_ruling": "what a ruling takes and gives",
    "domain.corrections.reversal": "who bears a payment that was taken back",
    "domain.corrections.sla": "what a broken promise is worth",
    "domain.epochs.emission": "how much TOKEN an epoch mints",
    "domain.epochs.net_emission": "what of it is left when burned TOKEN comes first",
    "domain.epochs.settlement": "how an epoch's pool becomes rewards",
    "domain.epochs.reward_terms": "what multiplies a reward, and what caps it",
    "domain.epochs.epoch": "when an epoch closes, settles and pays",
    "domain.chain.burn": "which burn on the chain buys which credits",
    "domain.chain.payout_root": "what an epoch's root lets be claimed",
    "contracts.payout_tree": "leaves, root and proofs of a payout",
    "ledger.books.chart": "which accounts can exist, and who must owe nothing",
    "ledger.books.books": "what a fact books",
    "ledger.books.lease": "what a lease books",
    "ledger.books.funds": "what money that comes and goes books",
    "ledger.books.income": "what earnings book",
    "ledger.books.epochs": "what TOKEN that is minted, paid and taken back books",
    "ledger.books.chain": "what burns and claims on the chain book",
    "ledger.books.corrections": "what disputes and reversals book",
    "ledger.books.entry": "that an entry sums to zero",
    "ledger.books.postings": "which entries a fact makes",
}

TESTS = (
    "tests/domain",
    "tests/ledger/books",
    "tests/ledger/tree/test_merkle.py",
    "tests/contracts/test_payout_tree.py",
)
LEFT_OUT = ("tests/domain/adversary",)
"""A search that takes as long as all other rules together, and asserts no amounts."""
