"""What is put right afterwards? Disputes, missed service levels, late usage and reversed payments
go in; rulings, credits and adjustments come out.
"""

__all__ = ("dispute", "dispute_opening", "dispute_ruling", "late_usage", "reversal", "sla")
