"""How do the numbers change, and what limits payments? Proposals, votes, grants and breakers go in;
published policies and the payments that are held come out.
"""

__all__ = (
    "breakers",
    "document",
    "grant",
    "lint",
    "proposal",
    "reasons",
    "registry",
    "rehearsal",
    "told_terms",
    "vote",
)
