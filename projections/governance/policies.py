"""Which versions of the policy and which proposals are there, and which version is in force?

    in force at a position == the version that the newest epoch opened by then was opened under

What a version or a proposal says is in its own stream; here is only where it was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule

_TABLES = """
    CREATE TABLE own.policy (
        version int PRIMARY KEY, effective_from_epoch int NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.proposal (number int PRIMARY KEY, position bigint NOT NULL);
    CREATE TABLE own.epoch (
        epoch int PRIMARY KEY, policy_version int NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL);
    CREATE INDEX ON own.proposal (position);
"""

_RULES = (
    Rule(
        ("policy.published.v1",),
        "version int, effective_from_epoch int",
        "INSERT INTO own.policy SELECT version, effective_from_epoch, position FROM facts",
    ),
    Rule(
        ("policy_proposal.proposed.v1",),
        "number int",
        "INSERT INTO own.proposal SELECT number, position FROM facts",
    ),
    Rule(
        ("epoch.opened.v1",),
        "epoch int, policy_version int, at_us bigint",
        "INSERT INTO own.epoch SELECT epoch, policy_version, at_us, position FROM facts",
    ),
)

POLICIES = Projection("policies", _TABLES, _RULES)

NEVER = 2**62


@dataclass(frozen=True, slots=True)
class PolicyRow:
    version: int
    effective_from_epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class ProposalRow:
    number: int
    position: int


@dataclass(frozen=True, slots=True)
class EpochBegun:
    """An epoch and the version of the policy it keeps."""

    epoch: int
    policy_version: int
    at_us: int
    position: int


def read_policies(
    connection: Connection,
    *,
    as_of: int | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[PolicyRow]:
    """Versions recorded by a position, in order."""
    sql = """SELECT * FROM proj_policies.policy WHERE version > %(after)s AND position <= %(as_of)s
        ORDER BY version LIMIT %(limit)s"""
    at = NEVER if as_of is None else as_of
    return read.listed(connection, PolicyRow, sql, way, after=after, as_of=at, limit=limit)


def read_proposals(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[ProposalRow]:
    """Proposals in the order in which they were made."""
    sql = """SELECT * FROM proj_policies.proposal WHERE position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, ProposalRow, sql, way, after=after, limit=limit)


def read_newest_epoch(connection: Connection, as_of: int | None = None) -> EpochBegun | None:
    """The newest epoch opened by a position."""
    sql = """SELECT * FROM proj_policies.epoch WHERE position <= %(as_of)s
        ORDER BY epoch DESC LIMIT 1"""
    return read.one(connection, EpochBegun, sql, as_of=NEVER if as_of is None else as_of)


def read_first_epoch(connection: Connection, version: int) -> EpochBegun | None:
    """The epoch with which a version came into force."""
    sql = """SELECT * FROM proj_policies.epoch WHERE policy_version = %(version)s
        ORDER BY epoch LIMIT 1"""
    return read.one(connection, EpochBegun, sql, version=version)
