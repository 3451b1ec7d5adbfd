"""Which environment was the log founded in, and does this process agree?

The environment is a fact of the log's first append. Whatever decides who joins, what counts and who
is paid asks the log, never a setting: two processes with other settings would settle one cut in two
ways. The setting says what the one who starts means, and a start that means something else is
refused.
"""

from __future__ import annotations

import logging

from api.settings import Settings, SettingsInvalid
from domain.parties.account import DEVELOPMENT, OPERATOR_STREAM
from ledger.log.handle import Ledger

logger = logging.getLogger(__name__)

WARNING = (
    "DEVELOPMENT: simulated devices join, count and are paid; nothing in this log is worth"
    " anything, and it never becomes one of production"
)


def is_development(ledger: Ledger) -> bool:
    """Whether the log was founded in development; before it is founded it is not."""
    return ledger.market.state_of(OPERATOR_STREAM).is_development


def environment_of(ledger: Ledger, settings: Settings) -> str:
    """The environment of the log; before it is founded, the one that it will be founded in."""
    return ledger.market.state_of(OPERATOR_STREAM).environment or settings.environment


def require_environment(ledger: Ledger, settings: Settings) -> None:
    """That the settings mean the environment of the log. Raises SettingsInvalid."""
    founded = environment_of(ledger, settings)
    if settings.environment != founded:
        raise SettingsInvalid(
            f"environment: this log was founded in {founded} and stays there, and"
            f" {settings.environment} is set. Set TALLYSTICK_ENVIRONMENT={founded}, or begin a new"
            " log with another data folder or database"
        )


def warn(ledger: Ledger, settings: Settings) -> None:
    """Say it at every start in development, where the operator reads it."""
    if environment_of(ledger, settings) == DEVELOPMENT:
        logger.warning(WARNING)


__all__ = ["WARNING", "environment_of", "is_development", "require_environment", "warn"]
