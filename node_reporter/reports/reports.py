"""From rows to signed reports: number them, chain them, sign the exact bytes, wrap for the wire.

    prev of report n + 1 == SHA-256(PAE(body of report n));   prev of report 1 == genesis
    Ed25519 signs PAE(body); the body is never serialised again

Not the spool: a `ReportChain` lives in memory, so replays and benchmarks can use it as it is. The
reporter makes one from the spool's head for every signature and stores the outcome.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nacl.signing import SigningKey

from domain.metering import report
from domain.metering.resources import ResourceRow
from node_reporter.clock import ClockOffset
from node_reporter.identity import key_id, public_key

AGENT = "0.1.0"
SCHEMA = "https://tallystick.org/schema/usage-report/1"
CONTENT_TYPE = "application/cloudevents-batch+json"
BODY_BYTES_SOFT = 245_760
"""A report is closed at 240 KiB, below the hard limit of the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedReport:
    """One report as it is stored and sent; `hash` and `prev` are 32 bytes.

    `key_id` empty: signed by the key that signs now.
    """

    seq: int
    body: bytes
    signature: bytes
    hash: bytes
    prev: bytes
    key_id: str = ""


class ReportChain:
    """The chain of one node's reports: the last number and hash, and the key that signs."""

    def __init__(
        self, node_id: str, signing_key: SigningKey, *, seq: int = 0, head: bytes | None = None
    ) -> None:
        """Continue at `seq` with the hash `head`; both left out: start at genesis."""
        assert (seq == 0) == (head is None), "a head belongs to a number"
        self.node_id = node_id
        self.seq = seq
        self.head = report.genesis(node_id, public_key(signing_key)) if head is None else head
        self._key = signing_key

    def sign(
        self,
        rows: Sequence[report.Row],
        devices: Sequence[report.Device],
        leases: Sequence[str],
        *,
        mono_us: int,
        wall_us: int,
        boot: str,
        clock: ClockOffset | None = None,
        events: Sequence[report.Event] = (),
        resources: Sequence[ResourceRow] = (),
        agent: str = AGENT,
    ) -> SignedReport:
        """The next report over these rows. Rows are sorted and index into devices and leases."""
        body = report.encode(
            report.Report(
                node=self.node_id,
                seq=self.seq + 1,
                prev=self.head.hex(),
                boot=boot,
                agent=agent,
                mono_us=mono_us,
                wall_us=wall_us,
                clock_offset_us=None if clock is None else clock.offset_us,
                clock_rtt_us=None if clock is None else clock.rtt_us,
                devices=tuple(devices),
                leases=tuple(leases),
                rows=tuple(rows),
                resources=tuple(resources),
                events=tuple(events),
            )
        )
        assert len(body) <= report.BODY_BYTES_MAX, len(body)
        signed = SignedReport(
            seq=self.seq + 1,
            body=body,
            signature=self._key.sign(report.pae(body)).signature,
            hash=report.report_hash(body),
            prev=self.head,
        )
        self.seq, self.head = signed.seq, signed.hash
        return signed


def envelope(node_id: str, key: str, signed: SignedReport, wall_us: int) -> dict[str, Any]:
    """The CloudEvents 1.0 envelope of one report; `key` is the key id."""
    sent_at = datetime.fromtimestamp(wall_us / 1_000_000, UTC)
    return {
        "specversion": "1.0",
        "id": str(signed.seq),
        "source": f"/nodes/{node_id}",
        "type": report.NAME,
        "time": sent_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "dataschema": SCHEMA,
        "sequence": str(signed.seq),
        "prevhash": signed.prev.hex(),
        "signature": base64.b64encode(signed.signature).decode(),
        "keyid": signed.key_id or key,
        "data_base64": base64.b64encode(signed.body).decode(),
    }


def batch(node_id: str, key: str, reports: Sequence[SignedReport], wall_us: int) -> bytes:
    """The body of one POST."""
    envelopes = [envelope(node_id, key, signed, wall_us) for signed in reports]
    return json.dumps(envelopes, separators=(",", ":")).encode()


def key_id_of(signing_key: SigningKey) -> str:
    """The key id a node's envelopes carry."""
    return key_id(public_key(signing_key))
