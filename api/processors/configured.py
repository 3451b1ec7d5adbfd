"""Which processors this installation has, by the way somebody pays. Wiring, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from api.processors.seam import Bank, Processor
from api.settings import Settings

DESTINATIONS = {
    "stripe": (r"acct_[0-9A-Za-z]{4,64}", "your account at Stripe, like acct_1NXabc2eZvKYlo2C"),
    "bank": (r".*", "what you agreed with the operator for a bank transfer, like an IBAN"),
}
"""By the processor that pays cash-outs: the form of a destination there, and what it is."""


def processors_of(settings: Settings) -> Mapping[str, Processor]:
    """By name: `bank` always, `stripe` with its keys."""
    found: dict[str, Processor] = {"bank": Bank(settings.bank_instructions)}
    if settings.stripe_secret_key is not None:
        assert settings.stripe_webhook_secret is not None, "settings are checked"
        assert settings.payment_return_url is not None, "settings are checked"
        from api.processors.stripe_cards import Stripe  # its library takes long to import

        found["stripe"] = Stripe(
            settings.stripe_secret_key,
            settings.stripe_webhook_secret,
            settings.payment_return_url,
            url=settings.stripe_url,
        )
    return found


def processor_for(method: str, processors: Mapping[str, Processor]) -> Processor | None:
    """Who takes money this way: a bank transfer the bank, a card whoever takes cards."""
    return processors.get("bank" if method == "bank" else "stripe")
