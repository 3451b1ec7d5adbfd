"""`docs/capacity.md`, made of `benchmarks/results/capacity.json` and `network.json`, nothing else.

    python -m benchmarks.capacity.page

No number in the page is typed by hand but what a month and an interval are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks.page import ROOT
from node_reporter.agent.agent import INTERVAL_US

PAGE = ROOT / "docs" / "capacity.md"
RESULTS = ROOT / "benchmarks" / "results" / "capacity.json"
NETWORK = ROOT / "benchmarks" / "results" / "network.json"
MONTH_US = 30 * 86_400_000_000
REPORTS = MONTH_US // INTERVAL_US
"""Of a node a month."""

_PAGE = """# Capacity: what a node costs, and what one machine carries

Written by `python -m benchmarks.capacity.page` from `benchmarks/results/capacity.json` and
`network.json`: do not edit. Costs were measured on {measured_at} UTC at commit `{commit}`, on
{cores} cores of {processor}, {memory:,} MiB, Python {python}, PostgreSQL {postgres}; load average
{load} before it began, so other work ran beside. Bytes and gas do not depend on that. Processor
time is what the processes used, and grows somewhat on a busy machine.

A month has 30 days. A node that works without a break sends a report every {interval} seconds,
{reports:,} a month; it sends more when leases begin and end, and fewer and larger ones after it
was cut off.

## A node a month

| of a node that reports with | {heads} |
|---|{dashes}|
{node}

How it was measured: {count} reports with a row for each GPU of {nodes} nodes, signed, with their
signatures checked and read, stored in batches of 100 in one process, then trees and views
followed. Bytes are what `pg_total_relation_size` of all tables grew by after `VACUUM`, divided by
the reports; pages that were begun are counted whole. WAL, backups and standbys come on top. The
processor time has no HTTP in it: [performance](performance.md) has the whole request. The reports
of a node are 32 drawn ones with other numbers, clocks and hashes, so the files of an export, which
are compressed, are smaller here than those of real nodes: take them as a floor.

## A fact

| bytes in PostgreSQL | a fact |
|---|---:|
{fact}

{facts:,} facts, all of a day of {leases:,} leases of {hours} hours of one GPU and of its \
founding, with books, trees and every view built anew:
{per_hour:,} bytes a leased GPU hour, {per_lease:,} a lease. One fact through the door with its \
books, and its views followed, takes {fact_us:,} us of
processor, of which PostgreSQL takes {fact_pg_us:,}: a deposit, one at a time.

## A payout

| act | gas |
|---|---:|
{gas}

On an embedded chain with the four contracts and a tree of 10,000 recipients. What gas costs is
the chain's matter: gas times the price of gas. `tests/contracts/test_gas.py` keeps each below a
ceiling.

## What one machine carries

| of nodes that report with | {heads} |
|---|{dashes}|
{machine}

These are quotients of the numbers above, and no test with so many nodes: a core that does nothing
but store and follow reports, and a disk of 1 TB (10^12 bytes) that holds nothing but them. The
requests, the market, the peaks, WAL and backups come on top.

## A network, settled

| nodes | {network_heads} |
|---|{network_dashes}|
{network}

{epochs} weekly epochs of each network in compressed time (`python -m benchmarks.capacity.network`):
what nodes did in a week is made up, and all that follows is the product's own code. 64 lanes are
weighed, capped and shared out by {executor}, one process merges them; 40 % of the nodes have an
owner of their own, 55 % are in fleets of about four, 5 % belong to ten owners. Rewards mature after
one epoch, some are taken back, one account in twenty has no wallet. Reports, views, facts and books
are not in it. Making up what nodes did is in the time from cut to epoch file.

Every file and every root was computed a second time from the epoch files, by SQL and a tree that
share no line with the product (`benchmarks/capacity/network_check.py`), and up to 100,000 nodes the
same bytes came of 7 lanes in one process. The root of the largest network is
`{root}`.

{most:,} nodes take {slope} times the processor time of {before:,}. {least:,} are mostly the start
of the processes: in one process they take {alone} s in all. Measured on {network_at} UTC at commit
`{network_commit}`, on {network_cores} cores of {network_processor}, {network_memory:,} MiB; other
work ran beside, as the load averages say: seconds are those of such a machine, processor time grows
somewhat with it, memory and bytes do not.

## When to add what

| when | add |
|---|---|
| the cores of the API are busy, PostgreSQL is not | API processes; they keep nothing \
([operate](howto/operate.md)) |
| a lost disk or machine may lose nothing | a synchronous standby ([fail \
over](howto/fail-over.md)) |
| the disk fills | a larger disk: reports of sealed epochs cannot leave yet \
([0083](decisions/0083-what-an-archive-of-reports-needs.md)) |
| an audit takes too long | processes or machines for `audit verify` ([verify an \
epoch](howto/verify-an-epoch.md)) |
| one PostgreSQL does not store the reports of all lanes in time | another server for some of the \
[lanes](howto/lanes.md) |

## What was not measured

- The reports, leases and views of 1,000,000 nodes: what these would take is a quotient of numbers
  above. What is settled from them was simulated.
- How bytes of a fact change with other commands than those of leases.
- What a node costs that shares its GPUs among many leases: its reports have more rows.
"""


def page(told: dict[str, Any], network: dict[str, Any]) -> str:
    """The document."""
    reports, facts, machine = told["reports"], told["facts"], told["machine"]
    in_all = sum(facts["bytes"].values())
    stored, appended = {**facts["bytes"], "in all": in_all}, facts["appended_ns"]
    one = next(iter(reports.values()))
    return _PAGE.format(
        measured_at=told["measured_at"][:16].replace("T", " "),
        commit=told["commit"][:12],
        cores=machine["cores"],
        processor=machine["processor"],
        memory=machine["memory_mib"],
        python=machine["python"],
        postgres=machine["postgres"]["server_version"],
        load=told["load_average"][0],
        interval=INTERVAL_US // 1_000_000,
        reports=REPORTS,
        heads=" | ".join(f"{devices} GPUs" for devices in reports),
        dashes="|".join("---:" for _ in reports),
        node="\n".join(
            _row(name, [of(one) for one in reports.values()]) for name, of in _NODE.items()
        ),
        count=f"{one['reports']:,}",
        nodes=one["nodes"],
        fact="\n".join(_row(k, [v]) for k, v in stored.items() if v),
        facts=facts["facts"],
        leases=facts["leases"],
        hours=facts["hours"],
        per_hour=in_all * facts["facts"] // (facts["leases"] * facts["hours"]),
        per_lease=in_all * facts["facts"] // facts["leases"],
        fact_us=sum(appended.values()) // 1_000,
        fact_pg_us=appended["postgresql"] // 1_000,
        gas="\n".join(_row(said, [told["gas"][name]]) for name, said in _GAS.items()),
        machine="\n".join(
            _row(name, [of(one) for one in reports.values()]) for name, of in _CARRIED.items()
        ),
        **_settled(network),
    )


def _settled(told: dict[str, Any]) -> dict[str, Any]:
    """What the page says of a network's epochs."""
    networks, machine = told["networks"], told["machine"]
    first, before, last = networks[0], networks[-2], networks[-1]
    rows = {name: [of(one) for one in networks] for name, of in _NETWORK.items()}
    loads = " | ".join("{} to {}".format(*one["load_average"]) for one in networks)
    kind, _, count = last["executor"].partition(":")
    return {
        "network_heads": " | ".join(f"{one['nodes']:,}" for one in networks),
        "network_dashes": "|".join("---:" for _ in networks),
        "network": "\n".join(
            [*(_row(name, values) for name, values in rows.items()), f"| load average | {loads} |"]
        ),
        "epochs": last["epochs"],
        "executor": f"{count} {kind}",
        "root": last["root"],
        "least": first["nodes"],
        "most": last["nodes"],
        "before": before["nodes"],
        "alone": first["serial_seconds"],
        "slope": round(last["processor_seconds"] / before["processor_seconds"], 1),
        "network_at": told["measured_at"][:16].replace("T", " "),
        "network_commit": told["commit"][:12],
        "network_cores": machine["cores"],
        "network_processor": machine["processor"],
        "network_memory": machine["memory_mib"],
    }


def _us_a_node(one: dict[str, Any]) -> int:
    """Of processor, in one epoch."""
    return int(one["processor_seconds"] * 10**6 / (one["nodes"] * one["epochs"]))


def _stage(one: dict[str, Any], *names: str) -> int:
    """Milliseconds of one epoch."""
    return int(sum(one["stages"][name] for name in names) * 1_000 / one["epochs"])


_GAS = {
    "mint": "mint of an epoch",
    "proposed": "root of an epoch proposed",
    "accepted": "root of an epoch accepted",
    "first_claim": "a recipient's first claim, alone",
    "later_claim": "a later claim of the same recipient, alone",
    "claim_among_100": "a first claim, one of 100 in a transaction",
}


def _row(name: str, values: list[int]) -> str:
    return f"| {name} | {' | '.join(f'{one:,}' for one in values)} |"


_Number = Callable[[dict[str, Any]], int]
_NODE: dict[str, _Number] = {
    "signed bytes of a report": lambda one: one["signed_bytes"],
    "bytes a report in PostgreSQL": lambda one: sum(one["bytes"].values()),
    "of these: the reports and their keys": lambda one: one["bytes"]["reports"],
    "of these: trees": lambda one: one["bytes"]["trees"],
    "of these: views": lambda one: one["bytes"]["views"],
    "bytes a report in the files of an export": lambda one: one["exported_bytes"],
    "**MB a month in PostgreSQL**": lambda one: sum(one["bytes"].values()) * REPORTS // 10**6,
    "MB a month in the files of an export": lambda one: one["exported_bytes"] * REPORTS // 10**6,
    "us of processor a report, checked and stored": lambda one: _us(one, "stored_ns"),
    "us of processor a report, trees and views": lambda one: _us(one, "followed_ns"),
    "**seconds of processor a month**": lambda one: _us_in_all(one) * REPORTS // 10**6,
}
_CARRIED: dict[str, _Number] = {
    "nodes by the processor, one core": lambda one: INTERVAL_US // max(1, _us_in_all(one)),
    "nodes by the disk, 1 TB for one year": lambda one: (
        10**12 // (sum(one["bytes"].values()) * REPORTS * 12)
    ),
}

_NETWORK: dict[str, _Number] = {
    "accounts with a leaf in the last root": lambda one: one["leaves"],
    "ms an epoch, from cut to epoch file": lambda one: _stage(one, "cut to epoch file"),
    "ms an epoch, leaves and tree": lambda one: _stage(one, "leaves", "tree"),
    "**us of processor a node and epoch**": _us_a_node,
    "MiB of the process that merges, at most": lambda one: one["memory_mib"],
    "MiB of a process that does lanes, at most": lambda one: one["memory_of_a_lane_mib"],
    "bytes of the epoch file a node": lambda one: one["file_bytes"] // one["nodes"],
    "seconds of the second computation, all epochs": lambda one: int(one["check_seconds"]),
}


def _us(one: dict[str, Any], what: str) -> int:
    return int(sum(one[what].values()) // 1_000)


def _us_in_all(one: dict[str, Any]) -> int:
    return _us(one, "stored_ns") + _us(one, "followed_ns")


def results() -> tuple[dict[str, Any], dict[str, Any]]:
    """What was measured last, of costs and of networks."""
    costs, network = (json.loads(one.read_text(encoding="utf-8")) for one in (RESULTS, NETWORK))
    return costs, network


def write() -> None:
    """The page."""
    PAGE.write_text(page(*results()), encoding="utf-8")


if __name__ == "__main__":
    write()
