"""An epoch file computed a second time: DuckDB and exact integers, and not one line of the ledger.

    results(file)        what came out, from what the file says went in
    differences(file)    where that is not what the file says came out
    breaks(files)        where an epoch does not start from what the epoch before left

SQL has 127 bits, and a pool times a weight may have more. So a pool is cut into p1 x 2^32 + p0:

    q1, r1 = divmod(p1 x w, W);    floor(pool x w / W) = q1 x 2^32 + (r1 x 2^32 + p0 x w) // W

which stays below 2^127 while pool < 2^63 and w <= W < 2^94; beyond, DuckDB refuses and never wraps.
The few numbers of an epoch that no node has (emission, release, what accounts owe) are Python's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

MILLION = 1_000_000
HOUR_US = 3_600_000_000
TREASURY = "treasury"
RESULTS = (
    "emission",
    "release",
    "pools",
    "weights",
    "unallocated",
    "carries",
    "returned",
    "rewards",
    "adjustments_open",
)
"""The fields of an epoch file that are computed; all others went in."""

_WITHOUT_TERMS: dict[str, Any] = {
    "source_weights": [["burned", MILLION], ["cash", MILLION]],
    "burned_per_gpu_hour": None,
    "class_ratings": [],
    "cap_multiple_ppm": None,
    "cap_goes_to": "next_epoch",
    "zero_weight_goes_to": "next_epoch",
    "bonus_from_ppm": 0,
    "bonus_range_ppm": 1,
    "bonus_max_ppm": 0,
    "availability_min_tier": 5,
    "availability_tier_2_ppm": 0,
    "availability_min_uptime_ppm": 0,
    "availability_cap_per_gpu_hour": None,
    "availability_cap_per_node": None,
    "owner_cap": None,
    "release_tau": None,
    "release_cap": "0",
}
"""A policy without terms: by use alone, nobody for being there."""

_WEIGHED = """
    CREATE OR REPLACE TEMP TABLE weighed AS
    WITH used AS (
        SELECT node, sum(CASE WHEN $by_value THEN burned::HUGEINT ELSE least(gpu_us::HUGEINT,
            coalesce(burned::HUGEINT * 3600000000 // $least::HUGEINT, gpu_us::HUGEINT)) END
            * s.ppm::HUGEINT)::HUGEINT AS units
        FROM use JOIN source s USING (source) GROUP BY node
    ), present AS (
        SELECT node, sum(gpu_us::HUGEINT)::HUGEINT AS attested_us,
            sum(gpu_us::HUGEINT * coalesce(k.ppm, 1000000)::HUGEINT)::HUGEINT AS low,
            sum(CASE WHEN tier >= $min_tier THEN
                gpu_us::HUGEINT * coalesce(k.ppm, 1000000)::HUGEINT END)::HUGEINT AS rated
        FROM device LEFT JOIN klass k USING (class)
        WHERE tier >= $paid_tier
            AND gpu_us::HUGEINT * 1000000 >= promised_us::HUGEINT * $min_uptime::HUGEINT
        GROUP BY node
    ), bonus AS (
        SELECT node, CASE WHEN score_ppm IS NULL THEN 1000000 ELSE 1000000 + $bonus_max::HUGEINT
            * least(greatest(score_ppm - $bonus_from, 0), $bonus_range) // $bonus_range END AS ppm
        FROM node
    )
    SELECT n.node, n.account,
        coalesce(u.units, 0)::HUGEINT * b.ppm::HUGEINT // 1000000000000 AS worked,
        coalesce(p.rated, 0)::HUGEINT // 1000000 AS present,
        coalesce(p.low, 0)::HUGEINT // 1000000 AS low,
        ((n.burned_tokens::HUGEINT - n.bought_tokens::HUGEINT) * $multiple::HUGEINT
            + n.bought_tokens::HUGEINT * least($multiple::HUGEINT, CASE WHEN $multiple IS NULL
                THEN NULL ELSE 950000 END)) // 1000000 AS worked_cap,
        least(coalesce(p.attested_us, 0)::HUGEINT * $hourly::HUGEINT // 3600000000,
            $flat::HUGEINT) AS present_cap
    FROM node n JOIN bonus b USING (node) LEFT JOIN used u USING (node)
        LEFT JOIN present p USING (node)
"""

# `least` of DuckDB passes over NULL: without both caps it is NULL, and nothing is capped.
_SHARE = """
    CASE WHEN {whole} = 0 THEN 0::HUGEINT ELSE
        ({high} * {w} // {whole}) * 4294967296
        + (({high} * {w} % {whole}) * 4294967296 + {low} * {w}) // {whole} END
"""

_SHARED = """
    CREATE OR REPLACE TEMP TABLE shared AS
    SELECT *, least(worked_share, worked_cap) AS worked_paid,
        least(present_share, present_cap) AS present_paid
    FROM (SELECT *, {worked} AS worked_share, {present} + {low} AS present_share FROM weighed)
"""

# An account above its cap gives up first what its last nodes have for being there, then, from the
# last node on again, what they have for work.
_OWNERS = """
    CREATE OR REPLACE TEMP TABLE paid AS
    WITH part AS (
        SELECT account, node, 1 AS turn, present_paid AS units FROM shared
        UNION ALL SELECT account, node, 2, worked_paid FROM shared
    ), ranked AS (
        SELECT *, sum(units) OVER whole - $owner::HUGEINT AS over,
            sum(units) OVER (PARTITION BY account ORDER BY turn, node DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - units AS before
        FROM part WINDOW whole AS (PARTITION BY account)
    )
    SELECT account, node, turn, (units - CASE WHEN over IS NULL THEN 0
        ELSE least(units, greatest(over - before, 0)) END)::HUGEINT AS units
    FROM ranked
"""


def results(document: Mapping[str, Any]) -> dict[str, Any]:
    """The computed fields of an epoch file, from the others."""
    policy, opening = document["policy"], document["openings"]
    terms = policy["rewards"] or _WITHOUT_TERMS
    emission = min(_scheduled(policy["segments"], document["epoch"]), int(opening["unissued"]))
    released = _released(terms, int(opening["recyclable"]))
    minted = emission + released
    pools = {
        "compute": minted * policy["compute_ppm"] // MILLION,
        "availability": minted * policy["availability_ppm"] // MILLION,
    }
    carried = {pool: int(opening[f"{pool}_carry"]) for pool in pools}
    sql = _database()
    _load(sql, document["nodes"], terms)
    weights = _weigh(sql, terms, by_value=policy["compute_base"] == "burned_value")
    low = pools["availability"] * terms["availability_tier_2_ppm"] // MILLION
    parts = {pool: pools[pool] + carried[pool] for pool in pools}
    parts |= {"availability": parts["availability"] - low, "availability_tier_2": low}
    shared = _share(sql, parts, weights)
    earned, given = _pay(sql, terms["owner_cap"])
    unallocated = []
    for pool, fresh in pools.items():
        idle = sum(
            units
            for part, units in parts.items()
            if part.removesuffix("_tier_2") == pool and not weights[part]
        )
        all_of_it = fresh + carried[pool]
        unallocated += _nobodys(pool, fresh, all_of_it, idle, shared[pool], given[pool], terms)
    returned = sum(part[3] for part in unallocated)
    returned_release = min(returned, released)
    rewards, still_open = _adjust(earned, minted - sum(pools.values()), opening["adjustments"])
    return {
        "emission": str(emission),
        "release": str(released),
        "pools": _texts({**pools, "treasury": minted - sum(pools.values())}),
        "weights": _texts(weights),
        "unallocated": [
            [pool, why, str(units), str(back)] for pool, why, units, back in unallocated
        ],
        "carries": _texts(
            {
                pool: sum(part[2] - part[3] for part in unallocated if part[0] == pool)
                for pool in pools
            }
        ),
        "returned": _texts({"emission": returned - returned_release, "release": returned_release}),
        "rewards": _pairs(rewards),
        "adjustments_open": _pairs(still_open),
    }


def differences(document: Mapping[str, Any]) -> list[str]:
    """Each computed field in which this file says another thing."""
    computed = results(document)
    return [
        f"epoch {document['epoch']}: {name} is {json.dumps(computed[name])[:120]},"
        f" the file says {json.dumps(document[name])[:120]}"
        for name in RESULTS
        if document[name] != computed[name]
    ]


def breaks(
    documents: Sequence[Mapping[str, Any]],
    burned: Mapping[int, int] | None = None,
    adjusted: Mapping[int, Mapping[str, int]] | None = None,
    forfeited: Mapping[int, int] | None = None,
) -> Iterator[str]:
    """Where an epoch does not go on from the one before; `documents` in order of epochs.

    `burned`: TOKEN units that came into the pool between the cut of the epoch before and this
    one's. `adjusted`: what facts asked accounts to be given or to give back while this epoch was
    open. `forfeited`: TOKEN units that came back to the compute pool then.
    """
    for before, document in pairwise(documents):
        epoch, opening = document["epoch"], document["openings"]
        kept = int(before["emission"]) - int(before["returned"]["emission"])
        kept_release = int(before["release"]) - int(before["returned"]["release"])
        due = dict(before["adjustments_open"])
        for account, delta in ((adjusted or {}).get(epoch) or {}).items():
            due[account] = str(int(due.get(account, 0)) + delta)
        expected = {
            "unissued": int(before["openings"]["unissued"]) - kept,
            "compute_carry": int(before["carries"]["compute"]) + (forfeited or {}).get(epoch, 0),
            "availability_carry": int(before["carries"]["availability"]),
        }
        if burned is not None:
            pool = int(before["openings"]["recyclable"]) - kept_release
            expected["recyclable"] = pool + burned.get(epoch, 0)
        for name, units in expected.items():
            if int(opening[name]) != units:
                yield f"epoch {epoch}: {name} {opening[name]}, the epoch before leaves {units}"
        if sorted(opening["adjustments"]) != sorted([who, d] for who, d in due.items() if int(d)):
            yield f"epoch {epoch}: other adjustments than those left open"
        if epoch != before["epoch"] + 1:
            yield f"epoch {epoch} after {before['epoch']}"
        if int(document["cut_position"]) <= int(before["cut_position"]):
            yield f"epoch {epoch}: its cut is not after that of the epoch before"
        if document["policy"]["version"] < before["policy"]["version"]:
            yield f"epoch {epoch}: an older policy than the epoch before"


# --- of the whole epoch ----------------------------------------------------------------------


def _scheduled(segments: Iterable[Sequence[Any]], epoch: int) -> int:
    """emission(k) = floor(A(k+1)/N) - floor(A k/N) of the segment that the epoch is in."""
    for start, count, total in ((int(one) for one in segment) for segment in segments):
        k = epoch - start
        if 0 <= k < count:
            return total * (k + 1) // count - total * k // count
    return 0


def _released(terms: Mapping[str, Any], pool: int) -> int:
    if terms["release_tau"] is None:
        return 0
    return min(int(terms["release_cap"]), pool // int(terms["release_tau"]))


def _nobodys(
    pool: str,
    fresh: int,
    everything: int,
    idle: int,
    shared: int,
    given: int,
    terms: Mapping[str, Any],
) -> list[tuple[str, str, int, int]]:
    """What of a pool nobody has, why, and what of it is not minted: never more than is fresh."""
    found = []
    for why, units, to in (
        ("rounding", everything - idle - shared, "next_epoch"),
        ("zero_weight", idle, terms["zero_weight_goes_to"]),
        ("cap", shared - given, terms["cap_goes_to"]),
    ):
        back = min(units, fresh) if to == "unissued" else 0
        fresh -= back
        if units:
            found.append((pool, why, units, back))
    return found


def _adjust(
    earned: Mapping[str, int], treasury: int, adjustments: Iterable[Sequence[str]]
) -> tuple[dict[str, int], dict[str, int]]:
    """Debts are paid to the treasury first, then the treasury pays, while each has something."""
    have = dict(earned)
    have[TREASURY] = have.get(TREASURY, 0) + treasury
    left = {account: int(delta) for account, delta in adjustments}
    for account in sorted(account for account, delta in left.items() if delta < 0):
        back = min(-left[account], have.get(account, 0))
        have[account] = have.get(account, 0) - back
        have[TREASURY] += back
        left[account] += back
    for account in sorted(account for account, delta in left.items() if delta > 0):
        more = min(left[account], have[TREASURY])
        have[TREASURY] -= more
        have[account] = have.get(account, 0) + more
        left[account] -= more
    return have, left


# --- of the nodes ----------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """One for all epochs: opening it takes longer than a small epoch."""
    sql = duckdb.connect(":memory:", config={"threads": 1})
    sql.execute("SET enable_progress_bar = false")  # it would be on standard output
    return sql


def _load(sql: duckdb.DuckDBPyConnection, nodes: Sequence[Any], terms: Mapping[str, Any]) -> None:
    texts = [pa.string()] * 4
    _table(
        sql,
        "node",
        {
            "node": pa.string(),
            "account": pa.string(),
            "burned_tokens": pa.string(),
            "score_ppm": pa.int64(),
            "bought_tokens": pa.string(),
        },
        [(row[0], row[1], row[3], row[4], row[6]) for row in nodes],
    )
    _table(
        sql,
        "use",
        dict(zip(("node", "source", "burned", "gpu_us"), texts, strict=True)),
        [(row[0], *use) for row in nodes for use in row[2]],
    )
    _table(
        sql,
        "device",
        {
            "node": pa.string(),
            "class": pa.string(),
            "tier": pa.int64(),
            "gpu_us": pa.string(),
            "promised_us": pa.string(),
        },
        [(row[0], *device) for row in nodes for device in row[5]],
    )
    _table(sql, "source", {"source": pa.string(), "ppm": pa.int64()}, terms["source_weights"])
    _table(sql, "klass", {"class": pa.string(), "ppm": pa.int64()}, terms["class_ratings"])


def _table(
    sql: duckdb.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, pa.DataType],
    rows: Sequence[Sequence[Any]],
) -> None:
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [pa.array(v, kind) for v, kind in zip(by_column, columns.values(), strict=True)]
    found = pa.table(dict(zip(columns, arrays, strict=True)))
    sql.register("found", found)
    sql.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM found")
    sql.unregister("found")


def _weigh(
    sql: duckdb.DuckDBPyConnection, terms: Mapping[str, Any], *, by_value: bool
) -> dict[str, int]:
    sql.execute(
        _WEIGHED,
        {
            "by_value": by_value,
            "least": terms["burned_per_gpu_hour"],
            "min_tier": terms["availability_min_tier"],
            "paid_tier": 2 if terms["availability_tier_2_ppm"] else terms["availability_min_tier"],
            "min_uptime": terms["availability_min_uptime_ppm"],
            "bonus_from": terms["bonus_from_ppm"],
            "bonus_range": terms["bonus_range_ppm"],
            "bonus_max": terms["bonus_max_ppm"],
            "multiple": terms["cap_multiple_ppm"],
            "hourly": terms["availability_cap_per_gpu_hour"],
            "flat": terms["availability_cap_per_node"],
        },
    )
    worked, present = _row(sql, "SELECT sum(worked), sum(present) FROM weighed")
    low, _ = _row(sql, "SELECT sum(low), 0 FROM weighed")
    return {"compute": worked, "availability": present, "availability_tier_2": low}


def _share(
    sql: duckdb.DuckDBPyConnection, pools: Mapping[str, int], weights: Mapping[str, int]
) -> dict[str, int]:
    """Every node's share of both pools, before caps; the sums."""
    shares = {}
    columns = {"compute": "worked", "availability": "present", "availability_tier_2": "low"}
    for pool, column in columns.items():
        units, whole = pools[pool], weights[pool]
        assert 0 <= units < 1 << 63, units
        assert 0 <= whole < 1 << 94, whole
        high, low = divmod(units, 1 << 32)
        shares[column] = _SHARE.format(
            high=f"{high}::HUGEINT", low=f"{low}::HUGEINT", whole=f"{whole}::HUGEINT", w=column
        )
    sql.execute(_SHARED.format(**shares))
    worked, present = _row(sql, "SELECT sum(worked_share), sum(present_share) FROM shared")
    return {"compute": worked, "availability": present}


def _pay(
    sql: duckdb.DuckDBPyConnection, owner_cap: str | None
) -> tuple[dict[str, int], dict[str, int]]:
    """What each account earns, and what each pool gives, after all caps."""
    sql.execute(_OWNERS, {"owner": owner_cap})
    earned = sql.execute("SELECT account, sum(units)::HUGEINT FROM paid GROUP BY 1").fetchall()
    present, worked = _row(
        sql,
        "SELECT sum(units) FILTER (WHERE turn = 1), sum(units) FILTER (WHERE turn = 2) FROM paid",
    )
    return dict(earned), {"compute": worked, "availability": present}


def _row(sql: duckdb.DuckDBPyConnection, query: str) -> tuple[int, int]:
    ((one, other),) = sql.execute(query).fetchall()
    return int(one or 0), int(other or 0)


def _texts(units: Mapping[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in units.items()}


def _pairs(units: Mapping[str, int]) -> list[list[str]]:
    return [[who, str(units[who])] for who in sorted(units) if units[who]]
