"""`tallystick key | member`: who acts for an account, and with which keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.arguments import AccountId, OwnAccount
from cli.remote import Remote, reads, records
from cli.signing import vote_on
from cli.terminal import InputUnusable, columns, facts, group, note

if TYPE_CHECKING:
    from tallystick_client.forms import (
        ApiKeyRequest,
        ApiKeyRotationRequest,
        InvitationRequest,
        KeyRecoveryCancelRequest,
        MemberRoleRequest,
    )

api_key = group("key", "API keys of your account.", "tallystick key list acct_1f0c...")
member = group("member", "Members of your account.", "tallystick member list acct_1f0c...")

KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Its 8 public characters.")]
MemberId = Annotated[str, typer.Argument(metavar="MEMBER", help="member_...")]
Scopes = Annotated[
    list[str],
    typer.Option("--scope", help="A scope that your own key has, like billing:read; repeat it."),
]
Role = Annotated[str, typer.Argument(help="owner, admin, billing, member or viewer.")]
RECOVERY = ("number", "status", "member_id", "key_id", "announced_at", "effective_at")
Expires = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Like 2027-01-01T00:00:00Z; default: as your own key."),
]


# --- keys --------------------------------------------------------------------------------------


@api_key.command("list", epilog="Example: tallystick key list acct_1f0c... --json")
@reads
def list_keys(remote: Remote, account_id: OwnAccount = None) -> None:
    """List the keys of an account, with what their members' roles leave of the scopes."""
    who = remote.own(account_id)
    told = remote.ask(lambda c: c.list_api_keys(who))
    rows = [{**row, "opens": ", ".join(row.get("opens", []))} for row in told["data"]]
    names = ("key_id", "member_id", "opens", "expires_at", "revoked_at", "succeeds")
    remote.tell(told, columns(rows, names))


@api_key.command("issue", epilog="Example: tallystick key issue acct_1f0c... --scope billing:read")
@records
def issue(remote: Remote, account_id: AccountId, scope: Scopes, expires: Expires = None) -> None:
    """Issue another key for yourself and print it, once. It can do no more than your key can."""
    body: ApiKeyRequest = {"scopes": _names(scope)}
    if expires is not None:
        body["expires_at"] = expires
    told = remote.ask(lambda c: c.create_api_key(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "scopes": ", ".join(told["scopes"])}))
    note("The key is not kept anywhere: store it now.")


@api_key.command("rotate", epilog="Example: tallystick key rotate acct_1f0c... 1a2b3c4d")
@records
def rotate(remote: Remote, account_id: AccountId, key_id: KeyId, expires: Expires = None) -> None:
    """Replace a key of your own and print the new one, once. The old one works for 24 hours."""
    body: ApiKeyRotationRequest = {} if expires is None else {"expires_at": expires}
    told = remote.ask(
        lambda c: c.rotate_api_key(account_id, key_id, body, idempotency_key=remote.key)
    )
    remote.tell(told, facts({**told, "scopes": ", ".join(told["scopes"])}))
    note("The key is not kept anywhere: store it now.")


@api_key.command("revoke", epilog="Example: tallystick key revoke acct_1f0c... 1a2b3c4d")
@reads
def revoke(remote: Remote, account_id: AccountId, key_id: KeyId) -> None:
    """Revoke a key at once: your own, or as an administrator another member's."""
    told = remote.ask(lambda c: c.delete_api_key(account_id, key_id))
    remote.tell(told, facts({name: told.get(name) for name in ("key_id", "revoked_at")}))


@api_key.command("recoveries", epilog="Example: tallystick key recoveries --json")
@reads
def list_recoveries(remote: Remote) -> None:
    """List the announced recoveries of the operator's key. Anybody may; no key is needed."""
    told = remote.ask(lambda c: c.list_key_recoveries())
    remote.tell(told, columns(told["data"], RECOVERY))


@api_key.command("cancel-recovery", epilog="Example: tallystick key cancel-recovery 1 --key me.key")
@records
def cancel_recovery(
    remote: Remote,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The recovery's number.")],
    signer: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            envvar="TALLYSTICK_GOVERNOR_KEY",
            help="A governor's personal key; needed once one is enrolled.",
        ),
    ] = None,
) -> None:
    """Cancel a recovery of the operator's key that waits. One person is enough."""
    body: KeyRecoveryCancelRequest = {}
    if signer is not None:
        known = remote.ask(lambda c: c.list_key_recoveries())["data"]
        found = next((one for one in known if one["number"] == number), None)
        if found is None:
            raise InputUnusable(f"there is no recovery {number}; see `tallystick key recoveries`")
        version = remote.ask(lambda c: c.list_governors())["version"]
        body["vote"] = vote_on(found["ballot"], signer, "cancel", governors=version)
    told = remote.ask(lambda c: c.cancel_key_recovery(number, body, idempotency_key=remote.key))
    remote.tell(told, columns(told["data"], RECOVERY))


# --- members -----------------------------------------------------------------------------------


@member.command("list", epilog="Example: tallystick member list acct_1f0c...")
@reads
def list_members(remote: Remote, account_id: OwnAccount = None) -> None:
    """List present and former members of an account."""
    who = remote.own(account_id)
    told = remote.ask(lambda c: c.list_members(who))
    remote.tell(told, columns(told["data"], ("member_id", "role", "added_at", "removed_at")))


@member.command(
    "invite", epilog="Example: tallystick member invite acct_1f0c... viewer --scope account"
)
@records
def invite(
    remote: Remote,
    account_id: AccountId,
    role: Role,
    scope: Scopes,
    present: Annotated[
        str | None,
        typer.Option("--member", metavar="MEMBER", help="A present member, for another key."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="The code works until then; default: 24 h.")
    ] = None,
    key_expires: Expires = None,
) -> None:
    """Invite a member and print the code, once. The invitee redeems it and alone sees the key."""
    named: Any = role
    body: InvitationRequest = {"role": named, "scopes": _names(scope)}
    if present is not None:
        body["member_id"] = present
    if until is not None:
        body["expires_at"] = until
    if key_expires is not None:
        body["key_expires_at"] = key_expires
    told = remote.ask(lambda c: c.invite_member(account_id, body, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "scopes": ", ".join(told["scopes"])}))
    note("Hand the code to the invitee, who runs: tallystick member join CODE")


@member.command("invitations", epilog="Example: tallystick member invitations acct_1f0c...")
@reads
def list_invitations(remote: Remote, account_id: OwnAccount = None) -> None:
    """List the invitations that wait to be redeemed."""
    who = remote.own(account_id)
    told = remote.ask(lambda c: c.list_invitations(who))
    rows = [{**row, "scopes": ", ".join(row["scopes"])} for row in told["data"]]
    remote.tell(told, columns(rows, ("invitation_id", "member_id", "role", "scopes", "expires_at")))


@member.command(
    "withdraw", epilog="Example: tallystick member withdraw acct_1f0c... invitation_1f0c..."
)
@records
def withdraw(
    remote: Remote,
    account_id: AccountId,
    invitation_id: Annotated[str, typer.Argument(metavar="INVITATION", help="invitation_...")],
) -> None:
    """Withdraw an invitation that was not redeemed yet."""
    told = remote.ask(
        lambda c: c.withdraw_invitation(account_id, invitation_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(dict(told)))


@member.command("join", epilog="Example: tallystick member join ts_invite_...")
@records
def join(
    remote: Remote, code: Annotated[str, typer.Argument(metavar="CODE", help="ts_invite_...")]
) -> None:
    """Redeem an invitation and print your key, once. No key is needed, unless you are a member."""
    told = remote.ask(lambda c: c.redeem_invitation({"code": code}, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "scopes": ", ".join(told["scopes"])}))
    note("The key is not kept anywhere: store it now.")


@member.command("role", epilog="Example: tallystick member role acct_1f0c... member_1f0c... viewer")
@records
def change_role(remote: Remote, account_id: AccountId, member_id: MemberId, role: Role) -> None:
    """Change the role of a member. The member's keys are narrowed to it at once."""
    named: Any = role
    body: MemberRoleRequest = {"role": named}
    told = remote.ask(
        lambda c: c.change_member_role(account_id, member_id, body, idempotency_key=remote.key)
    )
    remote.tell(told, facts(dict(told)))


@member.command("remove", epilog="Example: tallystick member remove acct_1f0c... member_1f0c...")
@records
def remove(remote: Remote, account_id: AccountId, member_id: MemberId) -> None:
    """Remove a member. Every key of theirs ends at once."""
    told = remote.ask(
        lambda c: c.remove_member(account_id, member_id, {}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(dict(told)))


def _names(scopes: list[str]) -> Any:
    """As they were typed; the server knows which there are."""
    return list(scopes)
