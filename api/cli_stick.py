"""`tallystick lease top-up | sign | stick` and `account signing-key`: more credits for a lease, and
the renter's half of the stick. The key that signs stays in its file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli_arguments import LeaseId
from api.cli_market import account as account
from api.cli_market import lease as lease
from api.cli_remote import Remote, credits_of, reads, records
from api.cli_terminal import facts

KeyFile = Annotated[
    Path, typer.Option("--key-file", help="32 bytes in hex, readable by you alone.")
]


@lease.command("top-up", epilog="Example: tallystick lease top-up lease_1f0c... --amount 5")
@records
def top_up(
    remote: Remote,
    lease_id: LeaseId,
    credits: Annotated[str, typer.Option("--amount", metavar="CREDITS", help="Such as 2.78.")],
    federated: Annotated[
        bool, typer.Option("--federated", help="Into what pays the federated fee.")
    ] = False,
) -> None:
    """Put credits of yours into the escrow of a lease; its end moves with them."""
    body: Any = {"amount": credits_of(credits), "federated": federated}
    told = remote.ask(lambda c: c.fund_lease(lease_id, body, idempotency_key=remote.key))
    shown = {"lease_id": lease_id, "deposited": credits, "funds_end_at": told.get("funds_end_at")}
    remote.tell(told, facts(shown))


@account.command(
    "signing-key", epilog="Example: tallystick account signing-key acct_1f0c... --key-file me.key"
)
@records
def signing_key(
    remote: Remote, account_id: Annotated[str, typer.Argument(metavar="ACCOUNT")], key_file: KeyFile
) -> None:
    """Let the key in a file sign for usage; the file is made if it is not there."""
    body: Any = {"public_key": bytes(key_of(key_file).verify_key).hex()}
    told = remote.ask(lambda c: c.add_signing_key(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in ("key_id", "public_key")}))


@lease.command("sign", epilog="Example: tallystick lease sign lease_1f0c... --key-file me.key")
@records
def sign(
    remote: Remote,
    lease_id: LeaseId,
    key_file: KeyFile,
    gpu_us: Annotated[
        int | None,
        typer.Option(min=0, help="Signed for, in all; absent: everything that was metered."),
    ] = None,
) -> None:
    """Sign for the usage of a lease up to its last accrual: the renter's half of the stick."""
    import hashlib

    from api.models import parse_moment
    from domain.countersign import message_for

    key = key_of(key_file)
    hours = remote.list(
        lambda c, size, cursor: c.list_lease_usage(lease_id, limit=size, cursor=cursor), 10_000
    )["data"]
    until = str(hours[-1]["until"]) if hours else None
    if until is None:
        remote.tell({"lease_id": lease_id, "signed": False}, ["nothing was accrued yet"])
        raise typer.Exit(1)
    metered = sum(int(hour["gpu_us"]) for hour in hours) if gpu_us is None else gpu_us
    message = message_for(lease_id, metered, parse_moment(until))
    body: Any = {
        "key_id": hashlib.sha256(bytes(key.verify_key)).hexdigest()[:16],
        "gpu_us": str(metered), "until": until, "signature": key.sign(message).signature.hex(),
    }  # fmt: skip
    told = remote.ask(lambda c: c.countersign_usage(lease_id, body, idempotency_key=remote.key))
    shown = {name: told.get(name) for name in ("lease_id", "gpu_us", "until", "key_id")}
    remote.tell(told, facts(shown))


@lease.command("stick", epilog="Example: tallystick lease stick lease_1f0c... --json")
@reads
def stick(remote: Remote, lease_id: LeaseId) -> None:
    """Both halves: what the node reported, and what the renter signed for."""
    told = remote.ask(lambda c: c.read_stick(lease_id))
    names = ("gpu_us", "matched_gpu_us", "unconfirmed_gpu_us", "contested_gpu_us", "signed_until")
    remote.tell(told, facts({name: told.get(name) for name in names}))


def key_of(path: Path) -> Any:
    """The signing key in a file, made if it is not there. Raises InputUnusable."""
    from nacl.signing import SigningKey

    from api.cli_terminal import InputUnusable
    from api.secret_files import SecretUnreadable, read_or_make

    try:
        return SigningKey(read_or_make(path))
    except (OSError, SecretUnreadable) as error:
        raise InputUnusable(f"{path}: {error}") from None


@lease.command("health", epilog="Example: tallystick lease health lease_1f0c...")
@reads
def health(remote: Remote, lease_id: LeaseId) -> None:
    """How both halves of a lease are: the renter's machine, and the node with its work."""
    told = remote.ask(lambda c: c.read_lease_health(lease_id))
    names = ("health", "detail", "machine", "node_id", "kernel", "arch", "seen_at", "reported_at")
    shown = {"state": told["state"]}
    for half in ("initiator", "acceptor"):
        found: Any = told[half]
        shown |= {f"{half} {name}": found[name] for name in names if found.get(name)}
    remote.tell(told, facts(shown))
