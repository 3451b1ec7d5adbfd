"""`tallystick attribute | reputation | kind | licence`: what is said about supply, how it behaved,
and what can be rented at all. Thin clients of the API; keys that sign stay in their files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.arguments import KeyFile, ProviderId
from cli.remote import AS_IT_IS, IN_ORDER, Remote, lists, reads, records
from cli.terminal import InputUnusable, columns, facts, group

attribute = group(
    "attribute",
    "Attributes: what third parties sign about nodes and providers.",
    "tallystick attribute list --subject NODE",
)
reputation = group(
    "reputation",
    "Reputation: how leases ended, and by the fault of which party.",
    "tallystick reputation show node node_1f0c...",
)
kind = group("kind", "Kinds of resources that can be rented.", "tallystick kind list")
licence = group(
    "licence", "Licences: seats of software that nodes rent out.", "tallystick licence list"
)

FILE_BYTES_MAX = 1_000_000
_STATED = ("statement_id", "subject_id", "name", "value", "signer_account_id", "valid")


# --- attributes ------------------------------------------------------------------------------


@attribute.command(
    "sign",
    epilog="Example: tallystick attribute sign node_1f0c... location DE-BE --account acct_2a..."
    " --key-file lab.key",
)
@records
def sign(
    remote: Remote,
    subject_id: Annotated[str, typer.Argument(metavar="SUBJECT", help="node_... or prov_...")],
    name: Annotated[str, typer.Argument(help="Such as location or certification.")],
    value: Annotated[str, typer.Argument(help="The value that is signed.")],
    account_id: Annotated[
        str, typer.Option("--account", metavar="ACCOUNT", help="The account that signs.")
    ],
    key_file: KeyFile,
    stated_at: Annotated[
        str, typer.Option(metavar="TIME", help="Start of the statement's validity.")
    ],
    expires_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the statement's validity.")
    ] = None,
) -> None:
    """Sign a statement about a node or provider of another account, and send it."""
    import hashlib

    from api.door.moments import parse_moment
    from cli.countersigning import key_of
    from domain.trust.attribute import message_for

    key = key_of(key_file)
    expires_us = None if expires_at is None else parse_moment(expires_at)
    message = message_for(subject_id, name, value, parse_moment(stated_at), expires_us)
    body: Any = {
        "subject_id": subject_id,
        "name": name,
        "value": value,
        "signer_account_id": account_id,
        "key_id": hashlib.sha256(bytes(key.verify_key)).hexdigest()[:16],
        "signature": key.sign(message).signature.hex(),
        "stated_at": stated_at,
        "expires_at": expires_at,
    }
    told = remote.ask(lambda c: c.add_attribute(body, idempotency_key=remote.key))
    remote.tell(told, facts({each: told.get(each) for each in _STATED}))


@attribute.command("list", epilog="Example: tallystick attribute list --subject node_1f0c...")
@lists(IN_ORDER)
def list_attributes(
    remote: Remote,
    subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="Only about this node or provider.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Only of this name.")] = None,
) -> None:
    """List signed statements and their signers."""
    found = remote.list(lambda c, page: c.list_attributes(subject_id=subject, name=name, **page))
    remote.tell(found, columns(found["data"], _STATED))


@attribute.command("revoke", epilog="Example: tallystick attribute revoke stmt_5b...")
@records
def revoke_attribute(
    remote: Remote,
    statement_id: Annotated[str, typer.Argument(metavar="STATEMENT", help="stmt_...")],
) -> None:
    """Revoke a statement that your account signed."""
    told = remote.ask(lambda c: c.revoke_attribute(statement_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


# --- reputation ------------------------------------------------------------------------------


@reputation.command("show", epilog="Example: tallystick reputation show node node_1f0c... --json")
@reads
def show_reputation(
    remote: Remote,
    of: Annotated[
        Literal["node", "provider", "renter"], typer.Argument(help="The node, provider or renter.")
    ],
    subject_id: Annotated[str, typer.Argument(metavar="ID", help="node_, prov_ or acct_...")],
    client_id: Annotated[
        str | None,
        typer.Option("--client", metavar="ACCOUNT", help="Only leases through this client."),
    ] = None,
    at_position: Annotated[
        int | None, typer.Option(min=0, help="As of this position of the log.")
    ] = None,
) -> None:
    """Show a score with its inputs and, for nodes and owners, the tier and what it lacks."""
    asked: dict[str, Any] = {"client_id": client_id, "as_of_position": at_position}
    calls: dict[str, Any] = {
        "node": lambda c: c.read_node_reputation(subject_id, **asked),
        "provider": lambda c: c.read_provider_reputation(subject_id, **asked),
        "renter": lambda c: c.read_renter_reputation(subject_id, **asked),
    }
    told = remote.ask(calls[of])
    names = ("subject_id", "day", "score_ppm", "provisional", "good", "total", "completion_ppm")
    shown = {each: told.get(each) for each in names}
    fault = ", ".join(f"{party} {count}" for party, count in told["closed_by_fault"].items())
    inputs = columns(
        told["inputs"], ("name", "weight_ppm", "g", "n", "mean_ppm", "lower_bound_ppm")
    )
    remote.tell(told, [*facts({**shown, "closed_by_fault": fault, **_standing(told)}), *inputs])


@reputation.command(
    "evidence", epilog="Example: tallystick reputation evidence node node_1f0c... --json"
)
@lists(AS_IT_IS)
def list_evidence(
    remote: Remote,
    of: Annotated[Literal["node", "provider"], typer.Argument(help="The node or provider.")],
    subject_id: Annotated[str, typer.Argument(metavar="ID", help="node_ or prov_...")],
    at_position: Annotated[
        int | None, typer.Option(min=0, help="As of this position of the log.")
    ] = None,
) -> None:
    """List the evidence behind a score: each fact that counts, for which input, and since when."""
    calls: dict[str, Any] = {
        "node": lambda c, page: c.list_node_evidence(
            subject_id, as_of_position=at_position, **page
        ),
        "provider": lambda c, page: c.list_provider_evidence(
            subject_id, as_of_position=at_position, **page
        ),
    }
    found = remote.list(calls[of])
    names = ("fact_position", "input", "good", "total", "day", "counts_from", "client_id")
    remote.tell(found, columns(found["data"], names))


def _standing(told: dict[str, Any]) -> dict[str, Any]:
    """Tier and bonus, and of the first tier that is not reached what is missing."""
    standing = told.get("standing")
    if standing is None:
        return {}
    lacking = next((one for one in standing["tiers"] if one["missing"]), None)
    lacks = (
        {}
        if lacking is None
        else {f"missing_for_tier_{lacking['tier']}": ", ".join(lacking["missing"])}
    )
    return {"tier": standing["tier"], "bonus_ppm": standing.get("bonus_ppm"), **lacks}


# --- kinds and licences ----------------------------------------------------------------------


@kind.command("list", epilog="Example: tallystick kind list")
@reads
def list_kinds(remote: Remote) -> None:
    """List every kind of resource that can be rented, by kind and vendor."""
    told = remote.ask(lambda c: c.list_resource_kinds())
    names = ("kind", "vendor", "memory", "divisible", "capacity_asset", "effective_from")
    remote.tell(told, columns(told["data"], names))


@kind.command("register", epilog="Example: tallystick kind register npu.json")
@records
def register_kind(
    remote: Remote,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Body of POST /v1/resource-kinds.")],
) -> None:
    """Register a vendor's devices of a kind, from a date on."""
    try:
        with file.open("rb") as opened:
            body: Any = json.loads(opened.read(FILE_BYTES_MAX))
    except (OSError, ValueError) as error:
        raise InputUnusable(f"{file}: {error}") from None
    told = remote.ask(lambda c: c.register_resource_kind(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@kind.command(
    "class",
    epilog='Example: tallystick kind class acme "Acme One" accelerator --from 2027-01-01T00:00Z',
)
@records
def class_model(
    remote: Remote,
    vendor: Annotated[str, typer.Argument(help="Its maker, in lower case.")],
    model: Annotated[str, typer.Argument(help="Words of the model's name.")],
    gpu_class: Annotated[str, typer.Argument(metavar="CLASS", help="A row of the tariff.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="RFC 3339, with its offset.")
    ],
) -> None:
    """Put a model into a class of the tariff, from a date on."""
    body: Any = {"vendor": vendor, "model": model, "gpu_class": gpu_class, "effective_from": from_}
    told = remote.ask(lambda c: c.register_model_class(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


_LICENCE = ("licence_id", "provider_id", "model", "seats", "from", "until", "revoked_at")


@licence.command(
    "grant",
    epilog='Example: tallystick licence grant prov_1f0c... thirdai "ThirdAI Bolt" --seats 8'
    " --terms licence.pdf --from 2026-11-20T00:00:00Z",
)
@records
def grant_licence(
    remote: Remote,
    provider_id: ProviderId,
    vendor: Annotated[str, typer.Argument(help="The maker of the software.")],
    model: Annotated[str, typer.Argument(help="The product, as its seats name it.")],
    seats: Annotated[int, typer.Option(min=1, help="Number of seats.")],
    terms: Annotated[Path, typer.Option(help="The paper that grants them; its hash is kept.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="RFC 3339, with its offset.")
    ],
    until: Annotated[str | None, typer.Option(metavar="TIME", help="End of the licence.")] = None,
) -> None:
    """Record a licence; seat n is the device LICENCE:n of a node's inventory, of kind seat."""
    import hashlib

    try:
        digest = hashlib.sha256(terms.read_bytes()).hexdigest()
    except OSError as error:
        raise InputUnusable(f"{terms}: {error}") from None
    body: Any = {
        "provider_id": provider_id,
        "vendor": vendor,
        "model": model,
        "seats": seats,
        "terms_sha256": digest,
        "from": from_,
        "until": until,
    }
    told = remote.ask(lambda c: c.grant_licence(body, idempotency_key=remote.key))
    remote.tell(told, facts({each: told.get(each) for each in _LICENCE}))


@licence.command("list", epilog="Example: tallystick licence list --json")
@lists(IN_ORDER)
def list_licences(remote: Remote) -> None:
    """List your licences; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_licences(**page))
    remote.tell(found, columns(found["data"], _LICENCE))


@licence.command("revoke", epilog="Example: tallystick licence revoke lic_7d...")
@records
def revoke_licence(
    remote: Remote, licence_id: Annotated[str, typer.Argument(metavar="LICENCE", help="lic_...")]
) -> None:
    """Revoke a licence. Its seats are not accepted in further nodes."""
    told = remote.ask(lambda c: c.revoke_licence(licence_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))
