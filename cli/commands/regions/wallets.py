"""`tallystick wallet`: the addresses that an account's rewards are paid to.

Thin clients of the API.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cli.remote import Remote, reads, records
from cli.terminal import columns, facts, group

wallet = group(
    "wallet", "Wallets: where an account's rewards are paid to.", "tallystick wallet list ACCOUNT"
)
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]


@wallet.command("list", epilog="Example: tallystick wallet list acct_2a...")
@reads
def list_wallets(remote: Remote, account_id: Account) -> None:
    """List the wallets of an account, and show the one that is paid now."""
    told = remote.ask(lambda c: c.list_wallets(account_id))
    rows = [{**one, "paid": one["address"] == told.get("paid")} for one in told["data"]]
    remote.tell(told, columns(rows, ("address", "paid", "effective_at", "linked_at")))


@wallet.command("challenge", epilog="Example: tallystick wallet challenge acct_2a... 0x1f...")
@reads
def challenge(
    remote: Remote,
    account_id: Account,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Of the wallet: 0x...")],
) -> None:
    """Print a text for the wallet to sign, valid for ten minutes and one use."""
    told = remote.ask(lambda c: c.create_wallet_challenge(account_id, {"address": address}))
    remote.tell(told, [told["message"], "", f"nonce: {told['nonce']}"])


@wallet.command("link", epilog="Example: tallystick wallet link acct_2a... NONCE 0x5c...")
@records
def link(
    remote: Remote,
    account_id: Account,
    nonce: Annotated[str, typer.Argument(metavar="NONCE", help="Of the challenge.")],
    signature: Annotated[str, typer.Argument(metavar="SIGNATURE", help="Of the wallet: 0x...")],
) -> None:
    """Link the wallet that signed the challenge. Rewards are paid to it 72 hours later."""
    told = remote.ask(
        lambda c: c.link_wallet(
            account_id, {"nonce": nonce, "signature": signature}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))
