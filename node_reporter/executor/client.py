"""The calls of an executor: what to do, what was done, what was printed. No retry happens here."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from node_reporter.executor.job_log import Piece
from node_reporter.executor.work import Work, WorkUnreadable, parse
from node_reporter.reports.client import TAG, Transport, Unreachable, parsed
from node_reporter.terminal import printable


@dataclass(frozen=True, slots=True)
class Said:
    """What the server said to a call: its status, and the code of a problem."""

    status: int
    code: str = ""

    @property
    def is_done(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """Whether asking again would be answered alike."""
        return self.is_done or self.status in (404, 409, 422)


class ExecutorClient:
    """One node's executor before its server."""

    def __init__(self, node_id: str, executor_key: str, transport: Transport) -> None:
        self._transport = transport
        self._path = f"/v1/nodes/{node_id}/assignments"
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {executor_key}",
        }
        self._known: tuple[str, Work] | None = None  # the list's tag, and the list

    def work(self) -> Work:
        """What the node is to do. Raises Unreachable, WorkUnreadable."""
        known = {} if self._known is None else {"If-None-Match": self._known[0]}
        answer = self._transport.request("GET", self._path, {**self._headers, **known}, None)
        if answer.status == 304 and self._known is not None:
            return self._known[1]
        if answer.status in (401, 403):
            raise WorkUnreadable("the executor's key is not good here: enroll again")
        if answer.status != 200:
            raise Unreachable(f"answered {answer.status}")
        try:
            work = parse(parsed(answer.body))
        except ValueError as error:
            raise WorkUnreadable(str(error)) from error
        tag = answer.headers.get("etag", "")
        self._known = (tag, work) if TAG.fullmatch(tag) else None
        return work

    def tell(self, lease_id: str, what: str, body: Mapping[str, Any]) -> Said:
        """Acknowledge, ready, ended or decline. Raises Unreachable."""
        return self._post(f"{self._path}/{lease_id}/{what}", body)[0]

    def tell_erased(self, volume_id: str) -> Said:
        """Nothing is left of a deleted volume. Raises Unreachable."""
        path = self._path.removesuffix("/assignments")
        return self._post(f"{path}/volumes/{volume_id}/erased", {})[0]

    def send_log(self, lease_id: str, seq: int, pieces: list[Piece], left_out: int) -> int | None:
        """The number that comes next; None: not taken, try again. Raises Unreachable."""
        data = [
            {"stream": stream, "body": base64.b64encode(body).decode()} for stream, body in pieces
        ]
        told = {"seq": seq, "left_out": left_out, "data": data}
        said, answer = self._post(f"{self._path}/{lease_id}/log", told)
        if said.is_done and type(answer.get("next_seq")) is int:
            return int(answer["next_seq"])
        # What the server will never take is let go, or nothing later would arrive.
        return seq + len(pieces) if said.is_final else None

    def _post(self, path: str, told: Mapping[str, Any]) -> tuple[Said, dict[str, Any]]:
        body = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
        key = sha256(path.encode() + b"\0" + body).hexdigest()[:32]
        headers = {**self._headers, "Idempotency-Key": key}
        answer = self._transport.request("POST", path, headers, body)
        try:
            document = parsed(answer.body)
        except ValueError:
            document = {}
        found = document if isinstance(document, dict) else {}
        return Said(answer.status, printable(str(found.get("code", ""))[:100])), found
