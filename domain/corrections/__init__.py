"""What is put right afterwards? Disputes, missed service levels, late usage and reversed payments
go in; rulings, credits and adjustments come out.
"""

__all__ = ("dispute", "dispute_ruling", "late_usage", "reasons", "registry", "reversal", "sla")
