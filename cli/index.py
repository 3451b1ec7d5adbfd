"""What each command is about. Written by `python -m cli.reference`: do not edit."""

from __future__ import annotations

ABOUT = {
    "statement": "What an account had, what moved and for what, and what is not billed yet.",
    "earnings": (
        "What was earned, by node, lease, hour and epoch; or why one accrual was shared as it was."
    ),
    "forecast": (
        "The second when the funds of each lease end, and until when the balance would last."
    ),
    "run": "Lease accelerators, run a program on them, sign for the usage, release them.",
    "quote": "What a job would get now, why, and if nothing, which demand to ease.",
    "explain": "Why the leases of a job are where they are, or why it has none.",
    "utilisation": "Where the accelerators' time went.",
    "fragmentation": (
        "What is free now, and how many requests for 1, 2, 4 or 8 whole devices of a node fit."
    ),
    "demo": (
        "Run the whole system on embedded parts, from signed usage reports to a claim on chain."
    ),
    "serve": "Serve the API and run the background jobs, until stopped.",
    "jobs": "Run only the background jobs: accrual, pins, signed heads, epochs, views.",
    "migrate": "Create or upgrade the database.",
    "config": "Show every setting in force and its source: flag, environment, file or default.",
    "conformance": "Run conformance vectors through the functions that the product uses.",
    "admin": "First steps on a new installation.",
    "account": "Accounts of renters and providers.",
    "provider": "Providers: accounts that rent GPUs out.",
    "region": "Regions: where a provider's nodes are.",
    "node": "Nodes: machines with GPUs.",
    "maintenance": "Maintenance of nodes, announced ahead.",
    "attribute": "Attributes: what third parties sign about nodes and providers.",
    "reputation": "Reputation: how leases ended, and by the fault of which party.",
    "kind": "Kinds of resources that can be rented.",
    "licence": "Licences: seats of software that nodes rent out.",
    "pool": "Pools: nodes under one scheduling policy.",
    "gang": "Gangs: leases that start together or not at all.",
    "offer": "Offers: GPUs for rent, and their price.",
    "lease": "Leases: rented GPUs.",
    "bid": "Bids: auctions, interruptible leases, whole months.",
    "dispute": "Disputes: charges that should not have been charged.",
    "tariff": "Tariffs: dated versions of what things cost.",
    "oracle": "Oracle: the price of a TOKEN, from its sources.",
    "webhook": "Webhooks: events of your account, sent to your endpoint.",
    "promotion": "Promotions: granted credits.",
    "payer": "Payers: one account pays for others.",
    "budget": "Budgets: monthly caps.",
    "payment": "Payments: credits bought by card or bank.",
    "cash-out": "Cash-outs: earned credits that leave as money.",
    "meter": "Meters: CPU, memory, storage and network of leases.",
    "device": "Edge devices, which pay by the month.",
    "storage": "Storage nodes of regions.",
    "grant": "Grants: TOKEN unlocked by milestones.",
    "reward": "Rewards: slashes and adjustments.",
    "breaker": "Breakers: limits of minting and paying.",
    "job": "Jobs: work, and the leases its plan opens.",
    "client": "Compute clients and their instances.",
    "group": "Groups that share a quota of GPUs.",
    "project": "Projects: what to do when a quota is full.",
    "counterparty": "Counterparties: accounts to deal with or not.",
    "epoch": "Reward epochs: list, preview, close, explain.",
    "payout": "Propose, accept and claim the root of a payout file.",
    "policy": "Policy: proposals, their lint, and published versions.",
    "audit": "Export the log, verify an export, prove one event.",
    "trace": "Replay cluster traces through the marketplace.",
    "usage": "Usage: what your leases used.",
    "export": "Books and bills for other tools: hledger, beancount, FOCUS, CSV, JSON.",
    "invoice": "Invoices and credit notes.",
}
