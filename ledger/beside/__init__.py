"""What must be kept but is no fact? Texts that can be erased, runs of timers and challenges go in;
they come out until they are deleted, and no rule depends on them.
"""

__all__ = (
    "alerts",
    "billing_details",
    "chain_store",
    "charged",
    "console_sessions",
    "dispute_texts",
    "key_set",
    "lease_halves",
    "lease_logs",
    "lease_parcels",
    "loaded_log",
    "sealed_secrets",
    "secret_salts",
    "service_accounts",
    "timer_runs",
    "wallet_challenges",
    "webhook_deliveries",
    "workspaces",
)
