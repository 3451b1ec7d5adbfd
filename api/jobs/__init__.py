"""How is work submitted and planned? Jobs, tasks and gangs go in over HTTP; their leases and what
became of each part come out.
"""

__all__ = ("jobs", "registry", "workspaces")
