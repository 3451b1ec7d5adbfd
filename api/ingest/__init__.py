"""How do signed reports come in? The bytes of reports go in, past the framework; receipts come out,
and the reports are in the usage log.
"""

__all__ = ("door", "node_keys")
