"""How does a party get an account, keys and news? Requests go in; accounts, clients, counterparty
lists and messages to webhooks come out.
"""

__all__ = ("accounts", "clients", "registry", "sign_up", "wallet_challenges", "webhook_sender")
