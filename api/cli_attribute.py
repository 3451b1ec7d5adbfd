"""`tallystick attribute | reputation | kind | licence`: what is said about supply, how it behaved,
and what can be rented at all. Thin clients of the API; keys that sign stay in their files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url
from api.cli_stick import KeyFile, key_of
from api.cli_terminal import AsJson, InputUnusable, columns, facts, group, tell

attribute = group(
    "Attributes: what third parties sign about nodes and providers.",
    "tallystick attribute list --subject NODE",
)
reputation = group(
    "Reputation: how leases ended, and through whose fault.",
    "tallystick reputation show node node_1f0c...",
)
kind = group("Kinds of resources: what can be rented at all.", "tallystick kind list")
licence = group("Licences: seats of software that nodes rent out.", "tallystick licence list")

FILE_BYTES_MAX = 1_000_000
_STATED = ("statement_id", "subject_id", "name", "value", "signer_account_id", "valid")


# --- attributes ------------------------------------------------------------------------------


@attribute.command(
    "sign",
    epilog="Example: tallystick attribute sign node_1f0c... location DE-BE --account acct_2a..."
    " --key-file lab.key",
)
def sign(
    subject_id: Annotated[str, typer.Argument(metavar="SUBJECT", help="node_... or prov_...")],
    name: Annotated[str, typer.Argument(help="Such as location or certification.")],
    value: Annotated[str, typer.Argument(help="What is so.")],
    account_id: Annotated[str, typer.Option("--account", metavar="ACCOUNT", help="Who signs.")],
    key_file: KeyFile,
    stated_at: Annotated[str, typer.Option(metavar="TIME", help="Since when you say so.")],
    expires_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Until when it is to count.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Sign a statement about somebody else's node or provider, and hand it in."""
    import hashlib

    from api.models import parse_moment
    from domain.attribute import message_for

    remote, key = Remote(url, api_key, key=idempotency_key), key_of(key_file)
    expires_us = None if expires_at is None else parse_moment(expires_at)
    message = message_for(subject_id, name, value, parse_moment(stated_at), expires_us)
    body: Any = {
        "subject_id": subject_id, "name": name, "value": value, "signer_account_id": account_id,
        "key_id": hashlib.sha256(bytes(key.verify_key)).hexdigest()[:16],
        "signature": key.sign(message).signature.hex(), "stated_at": stated_at,
        "expires_at": expires_at,
    }  # fmt: skip
    told = remote.ask(lambda c: c.add_attribute(body, idempotency_key=remote.key))
    tell(told, facts({each: told.get(each) for each in _STATED}), as_json=as_json)


@attribute.command("list", epilog="Example: tallystick attribute list --subject node_1f0c...")
def list_attributes(
    subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="Only about this node or provider.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Only of this name.")] = None,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Statements, and who signed them."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_attributes(
            subject_id=subject, name=name, limit=size, cursor=cursor
        ),
        limit,
    )
    tell(found, columns(found["data"], _STATED), as_json=as_json)


@attribute.command("revoke", epilog="Example: tallystick attribute revoke stmt_5b...")
def revoke_attribute(
    statement_id: Annotated[str, typer.Argument(metavar="STATEMENT", help="stmt_...")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Take back what your account has signed."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.revoke_attribute(statement_id, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


# --- reputation ------------------------------------------------------------------------------


@reputation.command("show", epilog="Example: tallystick reputation show node node_1f0c... --json")
def show_reputation(
    of: Annotated[Literal["node", "provider", "renter"], typer.Argument(help="Whose.")],
    subject_id: Annotated[str, typer.Argument(metavar="ID", help="node_, prov_ or acct_...")],
    client_id: Annotated[
        str | None, typer.Option("--client", metavar="ACCOUNT", help="What this client saw.")
    ] = None,
    at_position: Annotated[
        int | None, typer.Option(min=0, help="As it was at this position of the log.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """A score from how leases ended, as it is or as it was."""
    remote = Remote(url, api_key)
    asked: dict[str, Any] = {"client_id": client_id, "as_of_position": at_position}
    calls: dict[str, Any] = {
        "node": lambda c: c.read_node_reputation(subject_id, **asked),
        "provider": lambda c: c.read_provider_reputation(subject_id, **asked),
        "renter": lambda c: c.read_renter_reputation(subject_id, **asked),
    }
    told = remote.ask(calls[of])
    names = ("subject_id", "score_ppm", "provisional", "good", "total", "completion_ppm")
    shown = {each: told.get(each) for each in names}
    fault = ", ".join(f"{party} {count}" for party, count in told["closed_by_fault"].items())
    tell(told, facts({**shown, "closed_by_fault": fault}), as_json=as_json)


# --- kinds and licences ----------------------------------------------------------------------


@kind.command("list", epilog="Example: tallystick kind list")
def list_kinds(url: Url = None, api_key: ApiKey = None, as_json: AsJson = False) -> None:
    """Every kind of resource that can be rented, by kind and vendor."""
    told = Remote(url, api_key).ask(lambda c: c.list_resource_kinds())
    names = ("kind", "vendor", "memory", "divisible", "capacity_asset", "effective_from")
    tell(told, columns(told["data"], names), as_json=as_json)


@kind.command("register", epilog="Example: tallystick kind register npu.json")
def register_kind(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Body of POST /v1/resource-kinds.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Make a vendor's devices of a kind known, from a date on."""
    try:
        with file.open("rb") as opened:
            body: Any = json.loads(opened.read(FILE_BYTES_MAX))
    except (OSError, ValueError) as error:
        raise InputUnusable(f"{file}: {error}") from None
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.register_resource_kind(body, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@kind.command(
    "class", epilog='Example: tallystick kind class "Acme One" accelerator --from 2027-01-01T00:00Z'
)
def class_model(
    model: Annotated[str, typer.Argument(help="Words of the model's name.")],
    gpu_class: Annotated[str, typer.Argument(metavar="CLASS", help="A row of the tariff.")],
    from_: Annotated[str, typer.Option("--from", metavar="TIME", help="RFC 3339, with Z.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Put a model into a class of the tariff, from a date on."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: Any = {"model": model, "gpu_class": gpu_class, "effective_from": from_}
    told = remote.ask(lambda c: c.register_model_class(body, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


_LICENCE = ("licence_id", "provider_id", "model", "seats", "from", "until", "revoked_at")


@licence.command(
    "grant",
    epilog='Example: tallystick licence grant prov_1f0c... thirdai "ThirdAI Bolt" --seats 8'
    " --terms licence.pdf --from 2026-11-20T00:00:00Z",
)
def grant_licence(
    provider_id: Annotated[str, typer.Argument(metavar="PROVIDER", help="prov_...")],
    vendor: Annotated[str, typer.Argument(help="Who made the software.")],
    model: Annotated[str, typer.Argument(help="The product, as its seats name it.")],
    seats: Annotated[int, typer.Option(min=1, help="How many.")],
    terms: Annotated[Path, typer.Option(help="The paper that grants them; its hash is kept.")],
    from_: Annotated[str, typer.Option("--from", metavar="TIME", help="RFC 3339, with Z.")],
    until: Annotated[str | None, typer.Option(metavar="TIME", help="When it ends.")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Record a licence; seat n is the device LICENCE:n of a node's inventory, of kind seat."""
    import hashlib

    try:
        digest = hashlib.sha256(terms.read_bytes()).hexdigest()
    except OSError as error:
        raise InputUnusable(f"{terms}: {error}") from None
    remote = Remote(url, api_key, key=idempotency_key)
    body: Any = {"provider_id": provider_id, "vendor": vendor, "model": model, "seats": seats,
                 "terms_sha256": digest, "from": from_, "until": until}  # fmt: skip
    told = remote.ask(lambda c: c.grant_licence(body, idempotency_key=remote.key))
    tell(told, facts({each: told.get(each) for each in _LICENCE}), as_json=as_json)


@licence.command("list", epilog="Example: tallystick licence list --json")
def list_licences(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Your licences; all of them for operators and auditors."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_licences(limit=size, cursor=cursor), limit
    )
    tell(found, columns(found["data"], _LICENCE), as_json=as_json)


@licence.command("revoke", epilog="Example: tallystick licence revoke lic_7d...")
def revoke_licence(
    licence_id: Annotated[str, typer.Argument(metavar="LICENCE", help="lic_...")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Let its seats come into no more nodes."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.revoke_licence(licence_id, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)
