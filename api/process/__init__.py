"""What does one process of the server share? Settings, clock and keys go in; the ledger,
connections, locks, and the memory and the desk of the matcher come out.
"""

__all__ = (
    "clock",
    "collecting",
    "database_watch",
    "embedded_postgres",
    "founding",
    "key_export",
    "key_files",
    "key_rotation",
    "leading",
    "lease_desk",
    "one_by_one",
    "secret_files",
    "service",
    "timer",
    "waiting",
)
