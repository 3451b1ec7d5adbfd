"""What can a party ask of a server? Words go in; calls of the REST API and their answers come out.
Each file declares the names of its groups.
"""

__all__ = ()
