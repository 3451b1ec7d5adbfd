"""What does an epoch pay? The policy, the emission and what nodes did in the epoch go in; the
settlement, the rewards of each account and their explanation come out.
"""

__all__ = (
    "clients",
    "emission",
    "epoch",
    "epoch_file",
    "explanation",
    "forfeit",
    "lanes",
    "net_emission",
    "policy",
    "reasons",
    "registry",
    "reward_changes",
    "reward_correction",
    "reward_terms",
    "settlement",
    "taken_back",
    "wash_signals",
)
