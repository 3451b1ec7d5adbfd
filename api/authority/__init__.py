"""Who may decide for the network? Personal keys and signed votes go in over HTTP, their signatures
checked; the governors in force and the votes that count come out.
"""

__all__ = ("governors", "registry", "votes")
