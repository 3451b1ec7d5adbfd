"""What is a node or a party believed, and on what evidence? Challenges, attested attributes and
records of leases go in; trust tiers, reputation scores and what they demand come out.
"""

__all__ = (
    "attribute",
    "challenge",
    "challenge_check",
    "challenge_cuda",
    "evidence",
    "lifting",
    "reasons",
    "record",
    "registry",
    "reputation_terms",
    "reputation_tier",
    "scores",
    "tiers",
)
