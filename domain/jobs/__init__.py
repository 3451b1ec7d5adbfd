"""Which work has a plan, and which leases belong together? Submitted jobs, their tasks and gangs go
in; the leases that their plan wants and the places of a gang come out.
"""

__all__ = (
    "cron",
    "gang",
    "gang_places",
    "job",
    "parts",
    "plan",
    "reasons",
    "registry",
    "task_queue",
    "workspace",
)
