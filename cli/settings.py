"""Settings and the service for commands that work on this machine's data, and the flags for both.

Flags win over `TALLYSTICK_*`, which wins over the TOML file. There is no flag for a secret: the
database's address may hold a password, so it comes from the environment or the file.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from api.process.service import Service
    from api.settings import Loaded, Settings

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="TOML file of settings (TALLYSTICK_CONFIG)."),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Data folder (TALLYSTICK_DATA_DIR)."),
]
Port = Annotated[int | None, typer.Option(help="Port of the server (TALLYSTICK_PORT), else 8420.")]


def loaded(config: Path | None = None, **flags: Any) -> Loaded:
    """Every setting and where it came from. Raises SettingsInvalid."""
    from api import settings

    return settings.load(flags, file=config)


def in_force(config: Path | None = None, **flags: Any) -> Settings:
    """The settings. Raises SettingsInvalid."""
    return loaded(config, **flags).settings


@contextmanager
def opened(config: Path | None = None, **flags: Any) -> Generator[Service, None, None]:
    """The service on this machine's data: its database is started or joined, and migrated. Where
    writes wait for a standby it says so: else a command only seems to hang.
    """
    from api.process.database_watch import warn_of_standby
    from api.process.service import Service

    with Service.open(in_force(config, **flags)) as service:
        warn_of_standby(service)
        yield service
