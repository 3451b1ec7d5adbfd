"""Options of commands that reach a chain: which one, and which key signs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.signing import PASSWORD

Deployed = Annotated[
    Path | None,
    typer.Option("--deployment", metavar="FILE", help="Addresses (TALLYSTICK_CHAIN_DEPLOYMENT)."),
]
ChainUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Ethereum node (TALLYSTICK_CHAIN_URL).")
]
ChainFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Embedded chain, where there is no node.")
]
Keystore = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="TALLYSTICK_KEYSTORE",
        help=f"Encrypted key; its password comes from {PASSWORD} or is asked for.",
    ),
]
DevKey = Annotated[
    int | None, typer.Option(min=1, max=10, help="Public key of the embedded chain, by number.")
]
