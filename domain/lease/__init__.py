"""What is a lease: its facts, its state, its money? The facts of one lease go in; its state, its
escrow and when its funds end come out. The commands that make these facts are in `leasing`.
"""

__all__ = (
    "accrual_steps",
    "budgets",
    "choice",
    "close_codes",
    "countersign",
    "escrow",
    "forecast",
    "free_start",
    "funds",
    "holding",
    "lease",
    "looked",
    "mounts",
    "reasons",
    "registry",
    "reserved_term",
    "shared_escrow",
    "states",
    "turns",
    "work_commands",
)
