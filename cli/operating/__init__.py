"""What does the operator do on the server's own machine? In go settings, key files, the database
and folders of backups; out come checks, keys for another place, copies and restored markets.
"""

__all__ = ()
