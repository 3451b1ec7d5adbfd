"""Signed reports for the benchmarks: real form, real signatures, made fast enough to make many.

Not random per field: the columns come from a pool of variants, number, `prev` and times are the
report's own, so every signed body differs and every report is valid.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from nacl.bindings import crypto_sign
from nacl.signing import SigningKey

from domain.metering import report

VARIANTS = 32
STEP_US = 60_000_000
WALL_US = 1_790_000_000_000_000
BOOT = "5b1c9a7e-6f0d-4f0b-9c3f-2f1d0c9e8a71"


@dataclass(frozen=True, slots=True)
class BenchNode:
    """A node whose key everybody in the benchmark can derive from its number."""

    id: str
    secret: bytes
    public_key: bytes
    key_id: str

    @property
    def genesis(self) -> bytes:
        return report.genesis(self.id, self.public_key)


def bench_node(number: int) -> BenchNode:
    key = SigningKey(sha256(b"bench key %d" % number).digest())
    public_key = bytes(key.verify_key)
    return BenchNode(
        id=f"node_{sha256(b'bench node %d' % number).hexdigest()[:32]}",
        secret=bytes(key) + public_key,
        public_key=public_key,
        key_id=sha256(public_key).hexdigest()[:16],
    )


def _template(node: BenchNode, rows: int, devices: int, seed: int) -> bytes:
    """A valid report with places for prev, number, the two clocks and the first start."""
    draw = random.Random(seed)
    named = [
        report.Device(
            id=f"GPU-{sha256(f'{node.id}/{index}'.encode()).hexdigest()[:32]}",
            busy_source="gpm",
            energy_scope="device",
        )
        for index in range(devices)
    ]
    some = [
        report.Row(
            device=index % devices,
            lease=index % devices,
            driver_epoch=3,
            mono_start_us=index // devices * STEP_US + index % devices * 113,
            len_us=STEP_US,
            wall_minus_mono_us=WALL_US,
            available_us=STEP_US,
            unavailable_us=0,
            unknown_us=0,
            samples=60,
            busy_us=30_000_000 + draw.getrandbits(24),
            mem_byte_s=10**12 + draw.getrandbits(38),
            energy_mj=20_000_000 + draw.getrandbits(23),
            throttle_power_ns=draw.getrandbits(20),
            throttle_thermal_ns=0,
        )
        for index in range(rows)
    ]
    whole = report.Report(
        node=node.id,
        seq=7_000_007,
        prev="f" * 64,
        boot=BOOT,
        agent="0.1.0",
        mono_us=7_000_000_000_017,
        wall_us=7_000_000_000_027,
        clock_offset_us=-120,
        clock_rtt_us=8_000,
        devices=tuple(named),
        leases=tuple(
            f"lease_{sha256(f'{node.id}|{index}'.encode()).hexdigest()[:32]}"
            for index in range(devices)
        ),
        rows=tuple(some),
    )
    body = report.encode(whole).replace(b"%", b"%%")
    for old, new in (
        (b'"seq":7000007', b'"seq":%d'),
        (b"f" * 64, b"%b"),
        (b"7000000000017", b"%d"),
        (b"7000000000027", b"%d"),
        (b'"step_us":[0,', b'"step_us":[%d,'),
    ):
        assert body.count(old) == 1, old
        body = body.replace(old, new)
    return body


@dataclass(frozen=True, slots=True)
class Signed:
    """One report, ready to be sent or stored."""

    seq: int
    prev: bytes
    body: bytes
    signature: bytes


def reports(node: BenchNode, rows: int, devices: int = 8) -> Iterator[Signed]:
    """The endless reports of one node, one after another."""
    templates = [_template(node, rows, devices, seed) for seed in range(VARIANTS)]
    span_us = -(-rows // devices) * STEP_US
    prev, start_us, seq = node.genesis, 86_400_000_000, 0
    while True:
        seq += 1
        end_us = start_us + span_us + 4_000
        body = templates[seq % VARIANTS] % (seq, prev.hex().encode(), end_us, end_us, start_us)
        signature = crypto_sign(report.pae(body), node.secret)[:64]
        yield Signed(seq, prev, body, signature)
        prev, start_us = report.report_hash(body), start_us + span_us


def request(node: BenchNode, some: list[Signed]) -> bytes:
    """One HTTP/1.1 request with these reports."""
    from base64 import b64encode

    batch = [
        {
            "specversion": "1.0",
            "id": str(one.seq),
            "source": f"/nodes/{node.id}",
            "type": report.NAME,
            "time": "2026-11-20T08:00:00.000Z",
            "datacontenttype": "application/json",
            "dataschema": "https://tallystick.org/schema/usage-report/1",
            "sequence": str(one.seq),
            "prevhash": one.prev.hex(),
            "signature": b64encode(one.signature).decode(),
            "keyid": node.key_id,
            "data_base64": b64encode(one.body).decode(),
        }
        for one in some
    ]
    body = json.dumps(batch, separators=(",", ":")).encode()
    head = (
        f"POST /v1/nodes/{node.id}/usage HTTP/1.1\r\nHost: bench\r\n"
        f"Content-Type: application/cloudevents-batch+json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
