"""How does a machine come in, and is it fit for work? Requests, steps of the installation, errors
and what its owner states go in; join codes for installed machines and the condition of nodes come
out.
"""

__all__ = ("admission", "condition", "registry", "setup")
