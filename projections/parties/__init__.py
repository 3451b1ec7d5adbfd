"""Who may come in, and what is told to whom? Facts of accounts go in; keys, scopes, what clients
and groups used, and due webhooks come out.
"""

__all__ = ("access", "demand", "registry", "webhooks")
