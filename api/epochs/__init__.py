"""How does an epoch close, and why did it pay what it paid? The clock and requests go in; sealed
epochs, their files and explanations come out.
"""

__all__ = ("closing", "epochs", "files", "payout_files", "registry")
