"""An export read by DuckDB from its Parquet files: epochs, chain of epochs, lifetime totals, roots.

    differences(bundle) == []      names what is not so, in words

The facts are JSON of a published form (`docs/reference/formats.md`), so a stranger needs nothing of
ours to read them. Leaves here are the difference to what was promised before, in one line; the
ledger computes them address by address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb

from tests.independent.payout_root import root_of
from tests.independent.settlement_sql import TREASURY, breaks
from tests.independent.settlement_sql import differences as file_differences

_FACTS = """
    CREATE TEMP TABLE fact AS
    SELECT position, name, CAST(decode(body) AS JSON) AS body FROM read_parquet($files)
"""
_CHUNKS = """
    CREATE TEMP TABLE share AS
    SELECT position, name = 'epoch.rewards_matured.v1' AS is_matured, CAST(body->>'epoch' AS INT)
        AS epoch, r->>'account_id' AS account, CAST(r->'amount'->>'units' AS HUGEINT) AS units
    FROM (
        SELECT position, name, body, unnest(CAST(body->'rewards' AS JSON[])) AS r FROM fact
        WHERE name IN ('epoch.rewards_credited.v1', 'epoch.rewards_matured.v1'))
"""
_CREDITED = """
    SELECT account, CAST(sum(units) AS VARCHAR) FROM share WHERE epoch = $epoch AND NOT is_matured
    GROUP BY 1 ORDER BY 1
"""
_BURNED = """
    SELECT coalesce(sum(CAST(body->'tokens'->>'units' AS HUGEINT)), 0)
        + coalesce(sum(CAST(body->'tokens_burned'->>'units' AS HUGEINT)), 0)
    FROM fact WHERE name IN ('burn.confirmed.v1', 'deposit.credits_purchased.v1')
        AND position > $after AND position <= $until
"""
_MATURED = """
    WITH moved AS (
        SELECT position, account, units FROM share WHERE is_matured
        UNION ALL
        SELECT position, 'treasury', CAST(body->'amount'->>'units' AS HUGEINT) FROM fact
        WHERE name = 'epoch.reward_slashed.v1'
        UNION ALL
        SELECT position, account, -units FROM forfeit)
    SELECT account, sum(units) FROM moved WHERE position <= $until GROUP BY 1
"""
_FORFEITS = """
    CREATE TEMP TABLE forfeit AS
    SELECT position, epoch, r->>'account_id' AS account,
        CAST(r->'amount'->>'units' AS HUGEINT) AS units
    FROM (
        SELECT position, CAST(body->>'epoch' AS INT) AS epoch,
            unnest(CAST(body->'rewards' AS JSON[])) AS r
        FROM fact WHERE name = 'epoch.rewards_forfeited.v1')
"""
_MATURED_LESS_SLASHED = """
    WITH slashed AS (
        SELECT body->>'account_id' AS account, sum(CAST(body->'amount'->>'units' AS HUGEINT)) AS u
        FROM fact WHERE name = 'epoch.reward_slashed.v1' AND CAST(body->>'epoch' AS INT) = $epoch
        GROUP BY 1)
    SELECT account FROM share LEFT JOIN slashed USING (account) WHERE epoch = $epoch
    GROUP BY account, u
    HAVING sum(units) FILTER (WHERE is_matured)
        <> sum(units) FILTER (WHERE NOT is_matured) - coalesce(u, 0)
"""
_ADJUSTED = """
    SELECT body->>'account_id', sum(CAST(body->>'delta' AS HUGEINT)) FROM fact
    WHERE name = 'epoch.reward_adjusted.v1' AND CAST(body->>'epoch' AS INT) = $epoch GROUP BY 1
"""
_WALLETS = """
    SELECT body->>'account_id', arg_max(body->>'address', position) FROM fact
    WHERE name = 'account.wallet_linked.v1' AND position <= $until
        AND CAST(body->>'effective_at_us' AS BIGINT) <= $at_us
    GROUP BY 1
"""
_ROOT_CUT = """
    SELECT position, CAST(body->>'at_us' AS BIGINT) FROM fact
    WHERE CAST(body->>'epoch' AS INT) = $epoch AND (
        name IN ('epoch.rewards_credited.v1', 'epoch.mint_confirmed.v1')
        OR name = 'epoch.rewards_matured.v1' AND EXISTS (
            FROM fact s JOIN fact p ON p.body->>'version' = s.body->>'policy_version'
            WHERE s.name = 'epoch.sealed.v1' AND CAST(s.body->>'epoch' AS INT) = $epoch
                AND p.name = 'policy.published.v1' AND p.body->>'holdback_epochs' = '0'))
    ORDER BY position DESC LIMIT 1
"""


def differences(bundle: Path) -> list[str]:
    """What in a bundle does not follow from its facts and its files."""
    with duckdb.connect(":memory:", config={"threads": 1}) as sql:
        files = [str(path) for path in sorted((bundle / "log").glob("market-*.parquet"))]
        sql.execute(_FACTS, {"files": files})
        sql.execute(_CHUNKS)
        sql.execute(_FORFEITS)
        return [*_epochs(sql, bundle), *_roots(sql, bundle)]


def _bodies(sql: duckdb.DuckDBPyConnection, name: str) -> Iterator[dict[str, Any]]:
    query = "SELECT CAST(body AS VARCHAR) FROM fact WHERE name = $name ORDER BY position"
    for (text,) in sql.execute(query, {"name": name}).fetchall():
        yield json.loads(text)


def _epochs(sql: duckdb.DuckDBPyConnection, bundle: Path) -> Iterator[str]:
    documents, burned, cut = [], {}, 0
    adjusted: dict[int, dict[str, int]] = {}
    forfeited: dict[int, int] = {}
    for seal in _bodies(sql, "epoch.sealed.v1"):
        epoch = seal["epoch"]
        data = (bundle / f"epochs/{epoch}.json").read_bytes()
        if sha256(data).hexdigest() != seal["file_sha256"]:
            yield f"epoch {epoch}: another file was sealed"
        document = json.loads(data)
        documents.append(document)
        yield from file_differences(document)
        yield from _sealed(seal, document)
        credited = sql.execute(_CREDITED, {"epoch": epoch}).fetchall()
        if [list(row) for row in credited] != document["rewards"]:
            yield f"epoch {epoch}: credited other rewards than the file's"
        named = {"epoch": epoch}
        for (account,) in sql.execute(_MATURED_LESS_SLASHED, named).fetchall():
            yield f"epoch {epoch}: {account} matured another part than was left of it"
        rows = sql.execute(_ADJUSTED, named).fetchall()
        adjusted[epoch] = {account: int(delta) for account, delta in rows}
        lost = "SELECT coalesce(sum(units), 0) FROM forfeit WHERE epoch = $epoch"
        ((units,),) = sql.execute(lost, named).fetchall()
        forfeited[epoch] = int(units)
        until = int(seal["cut_position"])
        ((units,),) = sql.execute(_BURNED, {"after": cut, "until": until}).fetchall()
        burned[epoch], cut = int(units), until
    yield from breaks(documents, burned, adjusted, forfeited)


def _sealed(seal: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    """The totals of the seal are those of the file."""
    returned = {name: int(units) for name, units in document["returned"].items()}
    due = {
        "emission": document["emission"],
        "release": document["release"],
        "compute_pool": document["pools"]["compute"],
        "availability_pool": document["pools"]["availability"],
        "treasury_pool": document["pools"]["treasury"],
        "compute_carry": document["carries"]["compute"],
        "availability_carry": document["carries"]["availability"],
        "compute_carry_before": document["openings"]["compute_carry"],
        "availability_carry_before": document["openings"]["availability_carry"],
        "unissued": document["openings"]["unissued"],
        "recyclable": document["openings"]["recyclable"],
        "returned": str(sum(returned.values())),
        "returned_release": str(returned["release"]),
        "rewards": str(sum(int(units) for _, units in document["rewards"])),
    }
    for name, units in due.items():
        if seal[name]["units"] != units:
            yield f"epoch {document['epoch']}: sealed {name} {seal[name]['units']}, due {units}"
    if seal["recipients"] != len(document["rewards"]):
        yield f"epoch {document['epoch']}: other recipients"


def _roots(sql: duckdb.DuckDBPyConnection, bundle: Path) -> Iterator[str]:
    totals: dict[str, int] = {}
    owners: dict[str, str] = {}
    for built in _bodies(sql, "payout.root_built.v1"):
        epoch = built["epoch"]
        payout = json.loads((bundle / f"payouts/{epoch}.json").read_bytes())
        ((until, at_us),) = sql.execute(_ROOT_CUT, {"epoch": epoch}).fetchall()
        said = {entry["value"][2]: int(entry["value"][3]) for entry in payout["tree"]["values"]}
        wallets = dict(sql.execute(_WALLETS, {"until": until, "at_us": at_us}).fetchall())
        wallets.setdefault(TREASURY, _treasury(said, wallets, owners))
        before = dict(totals)
        for account, units in sql.execute(_MATURED, {"until": until}).fetchall():
            if account in wallets:
                promised = sum(totals[one] for one, owner in owners.items() if owner == account)
                if int(units) > promised:
                    address = wallets[account]
                    owners[address] = account
                    totals[address] = totals.get(address, 0) + int(units) - promised
        if said != totals:
            yield f"epoch {epoch}: other leaves than what matured"
        if any(totals[address] < units for address, units in before.items()):
            yield f"epoch {epoch}: a leaf fell"
        root = root_of(int(payout["chainId"]), payout["distributor"], totals)
        if not root == built["root"] == payout["root"]:
            yield f"epoch {epoch}: the root is {root}, built {built['root']}"
        if str(sum(totals.values())) != built["committed"]["units"]:
            yield f"epoch {epoch}: other units are committed than the leaves have"


def _treasury(
    said: Mapping[str, int], wallets: Mapping[str, str], owners: Mapping[str, str]
) -> str:
    """The one address that is nobody's: the treasury's is told by the payout files alone."""
    known = [address for address, owner in owners.items() if owner == TREASURY]
    unknown = said.keys() - set(wallets.values()) - owners.keys()
    return known[-1] if known else next(iter(unknown), "")
