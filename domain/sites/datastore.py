"""Stores of data beside a region's machines: a file server that jobs of its owner mount.

    attached to one of them  =>  the job runs in its region and nowhere else

NFS or SMB/CIFS, at an address, with a root that hides the rest (`domain/sites/paths.py`).
User and password of SMB stand beside the log, sealed (`ledger/beside/sealed_secrets.py`); the log
says only that there are some. A store needs the plan team, and a machine in the region that could
use it. Rows C-9, C-36 and C-37.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from domain.fleet.provider import existing_provider, existing_region
from domain.parties.account import open_account
from domain.parties.plan import TEAM, has_plan, plan_of
from domain.refusal import Refused
from domain.sites.names import NAME, NAME_RULE, free_name, take_name
from domain.sites.paths import require_path
from domain.sites.reasons import SitesReason
from domain.stream import Change, Stream, World

# Facts. Stream `datastore:{datastore_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class DatastoreAdded:
    datastore_id: str
    region_id: str
    account_id: str  # the region's provider's: its jobs may attach
    name: str  # unique in the region
    kind: str  # DATASTORE_KINDS
    address: str  # host name or IP address of the server
    root_path: str
    has_login: bool  # user and password are kept beside the log
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatastoreRemoved:
    datastore_id: str
    region_id: str
    by: str
    at_us: int


Fact: TypeAlias = DatastoreAdded | DatastoreRemoved


@dataclass(frozen=True, slots=True, kw_only=True)
class AddDatastore:
    """`machines`: nodes and edge devices of the region, as the views tell them."""

    datastore_id: str
    region_id: str
    name: str
    kind: str
    address: str
    root_path: str
    has_login: bool
    machines: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDatastore:
    datastore_id: str
    by: str
    at_us: int


NFS, SMB = "nfs", "smb"
DATASTORE_KINDS = (NFS, SMB)
HOST = re.compile(r"[0-9A-Za-z]([0-9A-Za-z.:-]{0,251}[0-9A-Za-z])?", re.ASCII)
"""A host name or an IP address: no user, no port, no path."""


@dataclass(frozen=True, slots=True)
class DatastoreState:
    added: DatastoreAdded | None = None
    is_removed: bool = False


def evolve(state: DatastoreState, fact: Fact) -> DatastoreState:
    match fact:
        case DatastoreAdded():
            return DatastoreState(fact)
        case DatastoreRemoved():
            return DatastoreState(state.added, is_removed=True)
        case _:
            assert_never(fact)


def datastore_stream(datastore_id: str) -> Stream[DatastoreState]:
    return Stream("datastore", datastore_id)


def existing_datastore(world: World, datastore_id: str) -> DatastoreAdded:
    """Raises Refused: DATASTORE_UNKNOWN, also for one that was removed."""
    state = world.state(datastore_stream(datastore_id))
    if state.added is None or state.is_removed:
        raise Refused(SitesReason.DATASTORE_UNKNOWN, datastore_id=datastore_id)
    return state.added


def require_site(world: World, region_id: str, machines: int) -> str:
    """The account of a region that may have stores and reserved ports (C-9).

    Raises Refused: REGION_UNKNOWN, ACCOUNT_CLOSED, PLAN_NEEDED, REGION_EMPTY.
    """
    provider_id = existing_region(world, region_id).provider_id
    account_id = existing_provider(world, provider_id).account_id
    open_account(world, account_id)
    require_plan(world, account_id)
    if machines < 1:
        raise Refused(SitesReason.REGION_EMPTY, region_id=region_id)
    return account_id


def require_plan(world: World, account_id: str) -> None:
    """Raises Refused: PLAN_NEEDED."""
    if not has_plan(world, account_id, TEAM):
        raise Refused(SitesReason.PLAN_NEEDED, plan=plan_of(world, account_id), needed=TEAM)


def decide_add(command: AddDatastore, world: World) -> list[Change]:
    """Raises Refused: REGION_UNKNOWN, ACCOUNT_CLOSED, PLAN_NEEDED, REGION_EMPTY, DATASTORE_INVALID,
    PATH_REFUSED, SITE_NAME_TAKEN.
    """
    account_id = require_site(world, command.region_id, command.machines)
    added = DatastoreAdded(
        datastore_id=command.datastore_id,
        region_id=command.region_id,
        account_id=account_id,
        name=command.name,
        kind=command.kind,
        address=command.address,
        root_path=command.root_path,
        has_login=command.has_login,
        by=command.by,
        at_us=command.at_us,
    )
    stream = datastore_stream(command.datastore_id)
    if world.state(stream).added is not None:
        return []
    _require_told(command)
    named = take_name(
        world, command.region_id, "datastore", command.name, command.datastore_id, command.at_us
    )
    return [named, Change(stream, added)]


def decide_remove(command: RemoveDatastore, world: World) -> list[Change]:
    """No new lease is attached to it; work that has mounted it is not ended. Twice is once.

    Raises Refused: DATASTORE_UNKNOWN.
    """
    stream = datastore_stream(command.datastore_id)
    state = world.state(stream)
    if state.added is None:
        raise Refused(SitesReason.DATASTORE_UNKNOWN, datastore_id=command.datastore_id)
    if state.is_removed:
        return []
    added = state.added
    removed = DatastoreRemoved(
        datastore_id=command.datastore_id,
        region_id=added.region_id,
        by=command.by,
        at_us=command.at_us,
    )
    freed = free_name(added.region_id, "datastore", added.name, command.at_us)
    return [freed, Change(stream, removed)]


def _require_told(command: AddDatastore) -> None:
    """Raises Refused: DATASTORE_INVALID, PATH_REFUSED."""
    if NAME.fullmatch(command.name) is None:
        raise _invalid("name", NAME_RULE)
    if command.kind not in DATASTORE_KINDS:
        raise _invalid("kind", "nfs or smb")
    if HOST.fullmatch(command.address) is None:
        raise _invalid("address", "a host name or an IP address alone")
    if command.has_login != (command.kind == SMB):
        raise _invalid("user", "user and password of an smb server, and none of nfs")
    require_path("root_path", command.root_path)


def _invalid(field: str, rule: str) -> Refused:
    return Refused(SitesReason.DATASTORE_INVALID, field=field, rule=rule)


NFS_ADVICE = (
    "Export the folder with root_squash: containers run as root, and root of a node must not be "
    "root of the server.",
    "For output, set anonuid and anongid of the export to a user and group that may write there.",
)
"""What the owner of an NFS server is told (C-37)."""


def advice_of(kind: str) -> tuple[str, ...]:
    """Advice for the server of a store of this kind."""
    return NFS_ADVICE if kind == NFS else ()


STREAMS: dict[str, tuple[Any, Any]] = {"datastore": (DatastoreState(), evolve)}
DECIDERS: dict[type[Any], Any] = {AddDatastore: decide_add, RemoveDatastore: decide_remove}
