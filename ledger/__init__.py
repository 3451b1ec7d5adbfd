"""What was recorded, and can it be proved? Facts and signed reports go in; two logs that only grow,
their books and their proofs come out.
"""

__all__ = ("advisory", "migrate")
