"""What travels with a lease's work to this node and back: files, variables, results. All that comes
from the server is checked against the job's hash; all that a job leaves is read without following
its links.
"""
