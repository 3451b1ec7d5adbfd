"""`tallystick payout`: the payout scripts. They read `payout.json` and the chain, never a database.

Every transaction is written into the outbox folder before it is sent, under a name made of what it
is for: run a command twice, or again after a crash, and nothing is sent twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.chain.connection import chain_of, deployment_file, is_address, signer_of
from cli.chain.options import ChainFile, ChainUrl, Deployed, DevKey, Keystore
from cli.settings import ConfigFile, DataDir, in_force
from cli.terminal import EXIT_NO, AsJson, InputUnusable, amount, columns, facts, group, note, tell

if TYPE_CHECKING:
    from contracts.manifest import Payout
    from contracts.outbox import Intent
    from contracts.payout_scripts import Sender
    from contracts.tally import Tally

app = group(
    "payout",
    "Propose, accept and claim the root of a payout file.",
    "tallystick payout status payout.json",
)

PayoutFile = Annotated[Path, typer.Argument(metavar="FILE", help="The payout file, payout.json.")]
OutboxFolder = Annotated[
    Path | None, typer.Option("--outbox", metavar="DIR", help="Where transactions are kept.")
]
Wait = Annotated[int, typer.Option(min=0, help="Seconds to wait until it is final.")]
Address = Annotated[
    str, typer.Option("--address", metavar="0x...", help="The address of the claim.")
]


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags every payout command has."""

    deployment: Path | None
    chain_url: str | None
    chain_file: Path | None
    config: Path | None
    data_dir: Path | None


@app.command(epilog="Example: tallystick payout propose payout.json --keystore proposer.json")
def propose(
    file: PayoutFile,
    keystore: Keystore = None,
    dev_key: DevKey = None,
    deployment: Deployed = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    outbox: OutboxFolder = None,
    wait: Wait = 120,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Propose the file's root, with the proposer's key. Starts the timelock."""
    from contracts import payout_scripts

    flags = Flags(deployment, chain_url, chain_file, config, data_dir)
    with _sending(flags, file, keystore, dev_key, outbox) as (payout, tally, sender):
        _tell_sent(payout_scripts.propose(payout, tally, sender), sender, wait, as_json)


@app.command(epilog="Example: tallystick payout accept payout.json --keystore anybody.json")
def accept(
    file: PayoutFile,
    keystore: Keystore = None,
    dev_key: DevKey = None,
    deployment: Deployed = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    outbox: OutboxFolder = None,
    wait: Wait = 120,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Accept the file's root after its timelock. Any account may do this."""
    from contracts import payout_scripts

    flags = Flags(deployment, chain_url, chain_file, config, data_dir)
    with _sending(flags, file, keystore, dev_key, outbox) as (payout, tally, sender):
        _tell_sent(payout_scripts.accept(payout, tally, sender), sender, wait, as_json)


@app.command(epilog="Example: tallystick payout claim payout.json --address 0x7e5f... --dev-key 7")
def claim(
    file: PayoutFile,
    address: Address,
    keystore: Keystore = None,
    dev_key: DevKey = None,
    deployment: Deployed = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    outbox: OutboxFolder = None,
    wait: Wait = 120,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Pay an address its unpaid claim. Anyone may send this; only the address is paid."""
    from contracts import payout_scripts

    flags = Flags(deployment, chain_url, chain_file, config, data_dir)
    with _sending(flags, file, keystore, dev_key, outbox) as (payout, tally, sender):
        sent = payout_scripts.claim(payout, tally, sender, _address(address))
        _tell_sent(sent, sender, wait, as_json)


@app.command(epilog="Example: tallystick payout status payout.json --address 0x7e5f...")
def status(
    file: PayoutFile,
    address: Annotated[
        str | None, typer.Option(metavar="0x...", help="Also this address's claim.")
    ] = None,
    deployment: Deployed = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the state of the file's root on chain: unproposed, pending, accepted or replaced."""
    from contracts import payout_scripts

    flags = Flags(deployment, chain_url, chain_file, config, data_dir)
    with _looking(flags, file) as (payout, tally):
        asked = None if address is None else _address(address)
        found = payout_scripts.status(payout, tally, asked)
    tell(found, _status_lines(found), as_json=as_json)


@app.command(epilog="Example: tallystick payout reconcile payout.json --json")
def reconcile(
    file: PayoutFile,
    deployment: Deployed = None,
    chain_url: ChainUrl = None,
    chain_file: ChainFile = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Recount the chain from its events, and compare it with the file and the deployment.

    Supply, emission, claims, roles and code. Exit 1 when anything differs. The ledger's own books
    are compared with the chain by `tallystick jobs`.
    """
    from contracts.reconcile import read_chain, reconcile_file

    flags = Flags(deployment, chain_url, chain_file, config, data_dir)
    with _looking(flags, file) as (payout, tally):
        chain = read_chain(tally)
        differences = reconcile_file(chain, payout, tally.root(number=chain.number))
    told: dict[str, Any] = {
        "reconciled": not differences,
        "block": chain.number,
        "total_supply": str(chain.total_supply),
        "committed": str(chain.committed_total),
        "claimed": str(chain.claimed_total),
        "differences": [
            {"name": each.name, "expected": str(each.expected), "got": str(each.got)}
            for each in differences
        ],
    }
    sums = {name: _tokens(told[name]) for name in ("total_supply", "committed", "claimed")}
    lines = facts({"block": chain.number, **sums})
    lines += columns(told["differences"], ("name", "expected", "got")) if differences else []
    lines.append("reconciled" if not differences else "NOT RECONCILED")
    tell(told, lines, as_json=as_json)
    if differences:
        raise typer.Exit(EXIT_NO)


def _tokens(units: str) -> str | None:
    return amount({"asset": "TOKEN", "units": units})


# --- the chain -------------------------------------------------------------------------------


@contextmanager
def _looking(flags: Flags, file: Path) -> Generator[tuple[Payout, Tally], None, None]:
    """The payout file and the deployed contracts."""
    from contracts import deployment as deployments
    from contracts import manifest
    from contracts.tally import Tally

    payout = manifest.read(file)
    settings = in_force(
        flags.config,
        data_dir=flags.data_dir,
        chain_url=flags.chain_url,
        chain_deployment=flags.deployment,
    )
    deployed = deployments.read(deployment_file(settings))
    with chain_of(settings, flags.chain_file) as chain:
        if chain.chain_id != deployed.chain_id:
            raise InputUnusable(
                f"the node is of chain {chain.chain_id}, the deployment of {deployed.chain_id}"
            )
        yield payout, Tally(chain, deployed)


@contextmanager
def _sending(
    flags: Flags, file: Path, keystore: Path | None, dev_key: int | None, folder: Path | None
) -> Generator[tuple[Payout, Tally, Sender], None, None]:
    from contracts.outbox import FileStore, Outbox
    from contracts.payout_scripts import Sender

    with _looking(flags, file) as (payout, tally):
        signer = signer_of(tally.chain.chain_id, keystore, dev_key)
        store = FileStore(folder or file.with_name("payout-outbox"))
        outbox = Outbox(store, tally.chain, [signer])
        yield payout, tally, Sender(outbox, store, signer.address)


def _address(text: str) -> str:
    if not is_address(text):
        raise InputUnusable(f"{text!r} is not an address: 0x and 40 hex digits")
    return text


# --- telling ---------------------------------------------------------------------------------


def _tell_sent(intent: Intent, sender: Sender, wait_s: int, as_json: bool) -> None:
    """Wait until the transaction has ended, and say how. Exit 1 when it failed."""
    from contracts.outbox import State
    from contracts.payout_scripts import finish

    pause: Callable[[], None] = lambda: time.sleep(1)  # noqa: E731
    ended = finish(intent, sender, pause, tries=wait_s)
    mined = ended.mined
    told = {
        "purpose": ended.id,
        "state": ended.state.value,
        "from": ended.sender,
        "nonce": ended.nonce,
        "transaction": mined.hash if mined else _last_hash(ended),
        "block": mined.block_number if mined else None,
        "gas_used": mined.gas_used if mined else None,
    }
    told = {name: value for name, value in told.items() if value is not None}
    tell(told, facts(told), as_json=as_json)
    if ended.state in {State.FAILED, State.CANCELLED}:
        note(f"the transaction {ended.state.value}: {ended.note or 'the contract refused it'}")
        raise typer.Exit(EXIT_NO)
    if ended.state is not State.FINAL:
        note("not final yet: run the same command again to carry it on; nothing is sent twice")


def _last_hash(intent: Intent) -> str | None:
    return intent.attempts[-1].hash if intent.attempts else None


def _status_lines(found: dict[str, Any]) -> list[str]:
    def tokens(units: str) -> str | None:
        return amount({"asset": "TOKEN", "units": units})

    shown = {name: found[name] for name in ("epoch", "seq", "root", "state")}
    if found["valid_at"] is not None:
        shown["valid_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found["valid_at"]))
    shown["leaves"] = found["leaves"]
    for name in ("committed", "claimed_total", "distributor_balance"):
        shown[name] = tokens(found[name])
    account = found.get("account")
    if account is not None:
        shown["address"] = account["address"]
        shown |= {name: tokens(account[name]) for name in ("total", "claimed", "claimable")}
    return facts(shown)
