"""What can be read quickly? Facts and reports of the logs go in; tables made for one question each
come out. All of them can be dropped and come back equal.
"""

__all__ = ("anew", "read", "runner", "tables")
