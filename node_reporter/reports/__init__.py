"""How does what was measured reach the server, once and in order? Rows go in; signed reports,
spooled on disk until the server has receipted them, come out.
"""

__all__ = (
    "client",
    "delivery",
    "joining",
    "neighbours",
    "reach",
    "reports",
    "rotation",
    "server_view",
    "spool",
    "spool_view",
)
