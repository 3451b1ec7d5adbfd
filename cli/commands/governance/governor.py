"""`tallystick governor`: personal keys, the register of governors, and votes on its changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.remote import Remote, reads, records
from cli.signing import KeyFile, keep_passkey, make_key, read_key, vote_on
from cli.terminal import AsJson, InputUnusable, columns, facts, group, tell

if TYPE_CHECKING:
    from tallystick_client.forms import GovernorChangeRequest

app = group(
    "governor",
    "Governors: the personal keys that decide for the network.",
    "tallystick governor list",
)

VOTES = ("needed", "yes", "no", "cancel")
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The change's number.")]


@app.command("make-key", epilog="Example: tallystick governor make-key me.key")
def make(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the secret.")],
    passkey: Annotated[
        str | None, typer.Option(metavar="KEY", help="Public key of a passkey; no secret is made.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a personal key. The secret stays in FILE, which only you can read."""
    told = {
        "file": str(file),
        "key": make_key(file) if passkey is None else keep_passkey(file, passkey),
    }
    tell(told, facts(told), as_json=as_json)


@app.command("enrol", epilog="Example: tallystick governor enrol --key me.key")
@records
def enrol(remote: Remote, signer: KeyFile) -> None:
    """Enrol your personal key. The first is enrolled at once, later ones by votes."""
    from domain.authority.vote import enrolment_text

    now = remote.ask(lambda c: c.list_governors())
    personal = read_key(signer)
    text = enrolment_text(now["network"], personal.public, now["version"])
    body: GovernorChangeRequest = {
        "action": "enrol",
        "governors": now["version"],
        "key": personal.public,
        "signature": personal.sign(text),
    }
    told = remote.ask(lambda c: c.propose_governor_change(body, idempotency_key=remote.key))
    remote.tell(told, _lines(told))


@app.command("list", epilog="Example: tallystick governor list --json")
@reads
def list_governors(remote: Remote) -> None:
    """List the governors, the mode, and every change that was proposed."""
    told = remote.ask(lambda c: c.list_governors())
    remote.tell(told, _lines(told))


@app.command("propose-change", epilog="Example: tallystick governor propose-change --threshold 3")
@records
def propose_change(
    remote: Remote,
    remove: Annotated[str | None, typer.Option(metavar="GOVERNOR", help="gov_...")] = None,
    threshold: Annotated[int | None, typer.Option(help="So many votes carry.")] = None,
) -> None:
    """Propose to remove a governor or to change the threshold. The present governors vote."""
    if (remove is None) == (threshold is None):
        raise InputUnusable("either --remove or --threshold")
    now = remote.ask(lambda c: c.list_governors())
    body: GovernorChangeRequest = {"action": "remove", "governors": now["version"]}
    if remove is not None:
        body["governor_id"] = remove
    if threshold is not None:
        body |= {"action": "threshold", "threshold": threshold}
    told = remote.ask(lambda c: c.propose_governor_change(body, idempotency_key=remote.key))
    remote.tell(told, _lines(told))


@app.command("approve", epilog="Example: tallystick governor approve 4 --key me.key")
@records
def approve(remote: Remote, number: Number, signer: KeyFile) -> None:
    """Vote for a change, with your personal key."""
    _vote(remote, number, signer, "yes")


@app.command("reject", epilog="Example: tallystick governor reject 4 --key me.key")
@records
def reject(remote: Remote, number: Number, signer: KeyFile) -> None:
    """Vote against a change, with your personal key."""
    _vote(remote, number, signer, "no")


@app.command("cancel", epilog="Example: tallystick governor cancel 4 --key me.key")
@records
def cancel(remote: Remote, number: Number, signer: KeyFile) -> None:
    """Vote to cancel a scheduled change before it comes into force."""
    _vote(remote, number, signer, "cancel")


@app.command("sign", epilog="Example: tallystick governor sign deposit.json --key me.key")
def sign_act(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Written with `--to-sign`.")],
    signer: KeyFile,
    as_json: AsJson = False,
) -> None:
    """Sign an operator's act that takes a second person. It is shown first."""
    from cli.acts import add_signature

    act = add_signature(file, signer)
    signed = [one["governor_id"] for one in act["signatures"]]
    told = {"file": str(file), "request": act["request"], "signed": ", ".join(signed)}
    tell(told, facts(told), as_json=as_json)


def _vote(remote: Remote, number: int, signer: Path, choice: Any) -> None:
    now = remote.ask(lambda c: c.list_governors())
    change = next((one for one in now["changes"] if one["number"] == number), None)
    if change is None:
        raise InputUnusable(f"there is no change {number}; see `tallystick governor list`")
    governors = now["version"] if choice == "cancel" else None
    vote = vote_on(change["ballot"], signer, choice, governors=governors)
    told = remote.ask(
        lambda c: c.vote_on_governor_change(
            number, {"choice": choice, "vote": vote}, idempotency_key=remote.key
        )
    )
    remote.tell(told, _lines(told))


def _lines(told: Mapping[str, Any]) -> list[str]:
    lines = facts({name: told[name] for name in ("network", "version", "mode", "threshold")})
    lines += columns(told["governors"], ("governor_id", "key"))
    names = ("number", "action", "status", "governor_id", "threshold", "from_epoch")
    rows = [
        {**one, **{name: _said(one["ballot"][name]) for name in VOTES}} for one in told["changes"]
    ]
    return lines + columns(rows, (*names, *VOTES))


def _said(told: Any) -> str:
    return " ".join(told) if isinstance(told, list) else str(told)
