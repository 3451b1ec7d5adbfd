"""Usage reports for tests of what follows the usage log, put straight into its tables."""

from __future__ import annotations

from typing import Any

import psycopg

from domain.metering import report
from domain.metering.report import Device, Report, Row
from domain.metering.resources import ResourceRow
from ledger.log.chain import chain, genesis_usage, stored_body, usage_leaf

HOUR_US = 3_600_000_000
START_US = 1_795_161_600_000_000
assert START_US % HOUR_US == 0


def make_report(
    node: str,
    seq: int,
    *,
    rows: int = 8,
    length_us: int = 60_000_000,
    start_us: int = START_US,
    devices: tuple[Device, ...] = (Device(id="GPU-1"), Device(id="GPU-2")),
    lease: str | None = "lease_00000001",
    offset_us: int | None = None,
) -> bytes:
    """The bytes of a report whose rows follow one another on each device in turn."""
    body = Report(
        node=node,
        seq=seq,
        prev="00" * 32,
        boot="00000000-0000-4000-8000-000000000000",
        agent="test",
        mono_us=10**12,
        wall_us=start_us,
        clock_offset_us=offset_us,
        devices=devices,
        leases=() if lease is None else (lease,),
        rows=tuple(
            Row(
                device=number % len(devices),
                lease=0 if lease is not None and number % len(devices) == 0 else None,
                driver_epoch=1,
                mono_start_us=number // len(devices) * length_us,
                len_us=length_us,
                wall_minus_mono_us=start_us,
                available_us=length_us - 3_000 - number,
                unavailable_us=2_000,
                unknown_us=1_000 + number,
                samples=60,
                busy_us=None if number % 3 == 0 else 500 + number,
                energy_mj=10,
                throttle_power_ns=None if number % 4 == 0 else number * 10**6,
                throttle_thermal_ns=None if number % 4 < 2 else 10**13,
            )
            for number in range(rows)
        ),
        resources=()
        if lease is None
        else tuple(
            ResourceRow(
                lease=0,
                mono_start_us=number * length_us,
                len_us=length_us,
                wall_minus_mono_us=start_us,
                cpu_us=length_us // 2 + number,
                memory_byte_s=None if number % 2 else number * 10**9,
                received_bytes=number,
                sent_bytes=None if number == 1 else seq,
                source="proc",
            )
            for number in range(3)
        ),
        events=(
            report.Event(
                type="device.inventory",
                mono_us=0,
                wall_us=start_us,
                device=seq % len(devices),
                data={"name": "A100", "pci_id": None, "mem_bytes": seq, "vbios": "unread"},
            ),
        ),
    )
    return report.encode(body)


def append_reports(connection: psycopg.Connection[Any], nodes: int, reports: int) -> None:
    """`reports` more reports of each of `nodes` nodes; the last of each is flagged."""
    for number in range(nodes):
        node = f"node_{number:032x}"
        row = connection.execute(
            "SELECT count(*) FROM usage_event WHERE node_id = %s", (node,)
        ).fetchone()
        assert row is not None
        for seq in range(row[0] + 1, row[0] + reports + 1):
            start_us = START_US + seq * (HOUR_US // 4)
            signed = make_report(node, seq, start_us=start_us, length_us=HOUR_US // 6)
            received_us = START_US + 24 * HOUR_US + seq
            append(connection, node, seq, signed, int(seq == reports), received_us)


def append(
    connection: psycopg.Connection[Any],
    node: str,
    seq: int,
    signed: bytes,
    flags: int = 0,
    recorded_us: int | None = None,
) -> int:
    """One report at the end of its lane, as it is; returns its position."""
    lane = report.lane_of(node)
    body = stored_body(signed, "key", b"\0" * 64)
    leaf = usage_leaf(lane, node, seq, body)
    with connection.transaction():
        head = connection.execute(
            "SELECT pos, hash FROM usage_head WHERE lane = %s FOR UPDATE", (lane,)
        ).fetchone()
        assert head is not None
        position = int(head[0]) + 1
        after = chain(bytes(head[1]) if head[0] else genesis_usage(lane), leaf)
        connection.execute(
            "INSERT INTO usage_event VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                lane,
                position,
                node,
                seq,
                report.NAME,
                body,
                leaf,
                after,
                flags,
                START_US + seq if recorded_us is None else recorded_us,
            ),
        )
        connection.execute(
            "UPDATE usage_head SET pos = %s, hash = %s WHERE lane = %s", (position, after, lane)
        )
    return position
