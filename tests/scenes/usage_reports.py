"""Signed reports for tests: a node with a key whose reports chain as a real one's do."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

from nacl.signing import SigningKey

from domain.metering import report
from domain.metering.resources import ResourceRow
from ledger.log.usage import Item, item

BOOT = "5b1c9a7e-6f0d-4f0b-9c3f-2f1d0c9e8a71"
STEP_US = 60_000_000


def rows(count: int = 4, devices: int = 2, first_us: int = STEP_US) -> tuple[report.Row, ...]:
    """Rows of one minute, the devices taking turns, each under the lease of its own index."""
    return tuple(
        report.Row(
            device=index % devices,
            lease=index % devices,
            driver_epoch=3,
            mono_start_us=first_us + index // devices * STEP_US + index % devices * 113,
            len_us=STEP_US,
            wall_minus_mono_us=1_795_161_600_000_000,
            available_us=STEP_US,
            unavailable_us=0,
            unknown_us=0,
            samples=60,
            busy_us=30_000_000 + index * 7919 % 1_000_003,
            mem_byte_s=10**12 + index * 7_368_787,
            energy_mj=9_000_000 + index % 3,
            throttle_thermal_ns=0,
        )
        for index in range(count)
    )


def resource_rows(count: int = 2, leases: int = 2) -> tuple[ResourceRow, ...]:
    """Resource rows of one minute, each lease's adjoining its own last one."""
    return tuple(
        ResourceRow(
            lease=index % leases,
            mono_start_us=STEP_US + index // leases * STEP_US + index % leases * 113,
            len_us=STEP_US,
            wall_minus_mono_us=1_795_161_600_000_000,
            cpu_us=4 * STEP_US - index,
            memory_byte_s=60 * 10**9,
            storage_byte_s=60 * 10**6 + index,
            received_bytes=None,
            sent_bytes=None,
            source="cgroup2",
        )
        for index in range(count)
    )


def a_report(node: str = "node_" + "0" * 32, seq: int = 1, devices: int = 2) -> report.Report:
    """A valid report; change it with `dataclasses.replace`."""
    return report.Report(
        node=node,
        seq=seq,
        prev="0" * 64,
        boot=BOOT,
        agent="0.1.0",
        mono_us=100 * STEP_US,
        wall_us=1_795_161_720_004_000,
        clock_offset_us=-120,
        clock_rtt_us=8_000,
        devices=tuple(
            report.Device(id=f"GPU-{index}", busy_source="gpm", energy_scope="device")
            for index in range(devices)
        ),
        leases=tuple(f"lease_{index:032x}" for index in range(devices)),
        rows=rows(devices=devices),
    )


class Node:
    """A node that signs: `node.next()` is its next report, as (body, signature)."""

    def __init__(self, name: str = "one") -> None:
        self.id = f"node_{sha256(name.encode()).hexdigest()[:32]}"
        self.key = SigningKey(sha256(b"key of " + name.encode()).digest())
        self.public_key = bytes(self.key.verify_key)
        self.key_id = sha256(self.public_key).hexdigest()[:16]
        self.genesis = report.genesis(self.id, self.public_key)
        self.seq = 0
        self.head = self.genesis

    @property
    def lane(self) -> int:
        return report.lane_of(self.id)

    def body(self, **changes: Any) -> bytes:
        """The next report's bytes, unsigned, the chain not moved."""
        draft = a_report(self.id, self.seq + 1)
        return report.encode(replace(draft, prev=self.head.hex(), **changes))

    def sign(self, body: bytes) -> bytes:
        return self.key.sign(report.pae(body)).signature

    def next(self, **changes: Any) -> tuple[bytes, bytes]:
        """Sign the next report and move the chain."""
        body = self.body(**changes)
        self.seq += 1
        self.head = report.report_hash(body)
        return body, self.sign(body)

    def item(self, body: bytes, flags: int = 0) -> Item:
        """The report as the log takes it."""
        known = json.loads(body)
        prev = bytes.fromhex(known["prev"])
        signature = self.sign(body)
        return item(self.id, known["seq"], prev, body, self.key_id, signature, self.genesis, flags)

    def items(self, count: int) -> list[Item]:
        """The next reports, ready for the log."""
        return [self.item(self.next()[0]) for _ in range(count)]

    def envelope(self, body: bytes, signature: bytes | None = None) -> dict[str, Any]:
        """What is sent for a report; identity is taken from the signed bytes."""
        known = json.loads(body)
        signed = self.sign(body) if signature is None else signature
        return {
            "specversion": "1.0",
            "id": str(known["seq"]),
            "source": f"/nodes/{self.id}",
            "type": report.NAME,
            "time": "2026-11-20T08:00:00.000Z",
            "dataschema": "https://tallystick.org/schema/usage-report/1",
            "sequence": str(known["seq"]),
            "prevhash": known["prev"],
            "signature": base64.b64encode(signed).decode(),
            "keyid": self.key_id,
            "data_base64": base64.b64encode(body).decode(),
        }
