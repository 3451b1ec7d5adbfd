"""What travels with a lease's work to this node and back? The server's answers go in, checked by
the job's hash, and the files that a job left, read without following a link; folders, variables and
results come out.
"""

__all__ = ("bringing", "returning")
