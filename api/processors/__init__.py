"""How does the server speak with processors of payments? Payments and payouts to make go in; what
the processor did comes out, the same for each processor.
"""

__all__ = ("configured", "seam")
