"""What a command is about, as its argument: the id of one thing, the same way in every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
OwnAccount = Annotated[
    str | None, typer.Argument(metavar="[ACCOUNT]", help="acct_...; default: the key's own.")
]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="job_...")]
LeaseId = Annotated[str, typer.Argument(metavar="LEASE", help="lease_...")]
NodeId = Annotated[str, typer.Argument(metavar="NODE", help="node_...")]
OfferId = Annotated[str, typer.Argument(metavar="OFFER", help="offer_...")]
ProviderId = Annotated[str, typer.Argument(metavar="PROVIDER", help="prov_...")]
RegionId = Annotated[str, typer.Argument(metavar="REGION", help="region_...")]
KeyFile = Annotated[
    Path, typer.Option("--key-file", help="32 bytes in hex, readable by you alone.")
]
