"""Reading what the fleet's projection keeps of supply beside free devices (`supply_tables`)."""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.read import OLDEST, Way
from projections.runner import Connection


@dataclass(frozen=True, slots=True)
class Kind:
    kind: str
    vendor: str
    dimensions: list[str]
    memory: str
    is_divisible: bool
    capacity_asset: str
    effective_from_us: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class ModelClass:
    vendor: str
    model: str
    gpu_class: str
    effective_from_us: int
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Admission:
    """Where a machine's admission stands is in its own stream."""

    admission_id: str
    account_id: str
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Licence:
    licence_id: str
    provider_id: str
    vendor: str
    model: str
    seats: int
    terms_sha256: str
    from_us: int
    until_us: int | None
    revoked_at_us: int | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Maintenance:
    maintenance_id: str
    node_id: str
    kind: str
    from_us: int
    until_us: int
    keep_leases: bool
    cancelled_at_us: int | None
    at_us: int
    position: int

    def status(self, at_us: int) -> str:
        """As `domain.fleet.maintenance.Window.status`: by the time alone."""
        if self.cancelled_at_us is not None:
            return "cancelled"
        if at_us < self.from_us:
            return "scheduled"
        return "running" if at_us < self.until_us else "over"


@dataclass(frozen=True, slots=True)
class Attribute:
    statement_id: str
    subject_id: str
    name: str
    value: str
    signer_account_id: str
    key_id: str
    signature: str
    stated_at_us: int
    expires_at_us: int | None
    revoked_at_us: int | None
    at_us: int
    position: int

    def counts(self, at_us: int) -> bool:
        """Whether it is neither taken back nor expired."""
        return self.revoked_at_us is None and (
            self.expires_at_us is None or at_us < self.expires_at_us
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """What a region's policy says of workloads and security (K-8)."""

    region_id: str
    setting: str
    refused_workloads: list[str]
    down_ranked_workloads: list[str]
    security_tier: int
    hardware_rules: list[str]


@dataclass(frozen=True, slots=True)
class IngressLoad:
    """Who stands behind an ingress node: `leases` that hold something of its workers now, and the
    GPU time they have served in the open epoch.
    """

    node_id: str
    region_id: str
    workers: int
    leases: int
    served_gpu_us: int


def read_kinds(connection: Connection) -> list[Kind]:
    """What the network registered, in order; the seeded kinds are in the domain."""
    return read.many(connection, Kind, "SELECT * FROM proj_fleet.kind ORDER BY position")


def read_admissions(
    connection: Connection,
    *,
    admission_id: str | None = None,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Admission]:
    """In order of request; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_fleet.admission WHERE position > %(after)s
        AND (%(id)s::text IS NULL OR admission_id = %(id)s)
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Admission,
        sql,
        way,
        id=admission_id,
        account=account_id,
        after=after,
        limit=limit,
    )


def read_model_classes(connection: Connection) -> list[ModelClass]:
    sql = "SELECT * FROM proj_fleet.model_class ORDER BY position"
    return read.many(connection, ModelClass, sql)


def read_licences(
    connection: Connection,
    *,
    provider_id: str | None = None,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Licence]:
    """In the order of their grant; `after` is the last position of the page before."""
    sql = """SELECT l.* FROM proj_fleet.licence l JOIN proj_fleet.provider p USING (provider_id)
        WHERE l.position > %(after)s
        AND (%(provider)s::text IS NULL OR l.provider_id = %(provider)s)
        AND (%(account)s::text IS NULL OR p.account_id = %(account)s)
        ORDER BY l.position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Licence,
        sql,
        way,
        provider=provider_id,
        account=account_id,
        after=after,
        limit=limit,
    )


def read_maintenance(
    connection: Connection, node_id: str, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[Maintenance]:
    """Of one node, in the order in which they were announced."""
    sql = """SELECT * FROM proj_fleet.maintenance WHERE node_id = %(node)s
        AND position > %(after)s ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Maintenance, sql, way, node=node_id, after=after, limit=limit)


def read_attributes(
    connection: Connection,
    *,
    subject_ids: list[str] | None = None,
    name: str | None = None,
    signer_account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Attribute]:
    """Statements in the order in which they came, those that do not count any more included."""
    of_subjects = "" if subject_ids is None else "AND subject_id = ANY(%(subjects)s)"
    sql = f"""SELECT * FROM proj_fleet.attribute WHERE position > %(after)s {of_subjects}
        AND (%(name)s::text IS NULL OR name = %(name)s)
        AND (%(signer)s::text IS NULL OR signer_account_id = %(signer)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(
        connection,
        Attribute,
        sql,
        way,
        subjects=subject_ids,
        name=name,
        signer=signer_account_id,
        after=after,
        limit=limit,
    )


OF_SIGNER_MAX, OF_SUBJECT_MAX = 10, 50


def read_attributes_in_force(
    connection: Connection, subject_ids: list[str], at_us: int
) -> dict[str, list[Attribute]]:
    """By subject, what counts at this moment, in the order in which it came: the last
    `OF_SIGNER_MAX` of each signer, and the first `OF_SUBJECT_MAX` of these. So one who states much
    hides nothing that others say, and much said of one subject hides nothing of another.
    """
    sql = """SELECT statement_id, subject_id, name, value, signer_account_id, key_id, signature,
            stated_at_us, expires_at_us, revoked_at_us, at_us, position
        FROM (
            SELECT *, row_number() OVER (PARTITION BY subject_id ORDER BY position) AS nth
            FROM (
                SELECT *, row_number() OVER (
                    PARTITION BY subject_id, signer_account_id ORDER BY position DESC) AS last
                FROM proj_fleet.attribute
                WHERE subject_id = ANY(%(subjects)s) AND revoked_at_us IS NULL
                    AND (expires_at_us IS NULL OR expires_at_us > %(at)s)) counts
            WHERE last <= %(of_signer)s) told
        WHERE nth <= %(of_subject)s ORDER BY position"""
    bounds = {"of_signer": OF_SIGNER_MAX, "of_subject": OF_SUBJECT_MAX}
    told: dict[str, list[Attribute]] = {}
    for one in read.many(connection, Attribute, sql, subjects=subject_ids, at=at_us, **bounds):
        told.setdefault(one.subject_id, []).append(one)
    return told


def read_next_maintenance(
    connection: Connection, node_ids: list[str], at_us: int
) -> dict[str, Maintenance]:
    """By node: the window that runs at this moment, or the next one to come."""
    sql = """SELECT DISTINCT ON (node_id) * FROM proj_fleet.maintenance
        WHERE node_id = ANY(%(nodes)s) AND cancelled_at_us IS NULL AND until_us > %(at)s
        ORDER BY node_id, from_us, position"""
    found = read.many(connection, Maintenance, sql, nodes=node_ids, at=at_us)
    return {window.node_id: window for window in found}


def read_policies(connection: Connection, region_ids: list[str]) -> dict[str, Policy]:
    """By region."""
    sql = "SELECT * FROM proj_fleet.region_policy WHERE region_id = ANY(%(ids)s)"
    found = read.many(connection, Policy, sql, ids=region_ids)
    return {policy.region_id: policy for policy in found}


def read_ingress_load(connection: Connection, region_id: str) -> list[IngressLoad]:
    """One row for each ingress node of a region, by id (K-13)."""
    sql = """SELECT r.node_id, n.region_id, count(w.node_id)::int AS workers,
            coalesce(sum(h.leases), 0)::int AS leases,
            coalesce(sum(s.gpu_us), 0)::bigint AS served_gpu_us
        FROM proj_fleet.role r JOIN proj_fleet.node n ON n.node_id = r.node_id
        LEFT JOIN proj_fleet.role w ON w.ingress_node_id = r.node_id AND w.role = 'worker'
        LEFT JOIN LATERAL (
            SELECT count(DISTINCT o.lease_id) AS leases
            FROM proj_fleet.device d JOIN proj_fleet.holding o USING (device_id)
            WHERE d.node_id = w.node_id) h ON true
        LEFT JOIN proj_fleet.served s ON s.node_id = w.node_id
            AND s.epoch = (SELECT coalesce(max(epoch), 0) FROM proj_fleet.epoch)
        WHERE r.role = 'ingress' AND n.region_id = %(region)s
        GROUP BY r.node_id, n.region_id ORDER BY r.node_id"""
    return read.many(connection, IngressLoad, sql, region=region_id)
