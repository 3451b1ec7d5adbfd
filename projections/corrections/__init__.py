"""Which disputes are open, and which usage was agreed? Facts of disputes and countersigned reports
go in; lists by party and state come out.
"""

__all__ = ("agreed", "disputes", "registry")
