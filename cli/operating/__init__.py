"""How does an operator keep a server sound? The settings of this machine, key files, the database
and folders of backups go in; checks with what to do, copies and restored markets come out.
"""

__all__ = ("early_database", "kept_code")
