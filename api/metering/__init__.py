"""What was used, and what is due for it? Reports in the usage log and readings of meters go in;
charges and answers about usage come out.
"""

__all__ = ("accrual", "consumed", "registry", "resource_rows", "unbilled")
