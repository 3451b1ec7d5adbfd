"""Who acts, with which key, with whom? Registrations, keys, clients, counterparty lists and
webhooks go in; the accounts and what each may do come out.
"""

__all__ = (
    "account",
    "api_key",
    "client",
    "counterparty",
    "member",
    "plan",
    "reasons",
    "registry",
    "sign_up",
    "webhook",
)
