"""The calls of an executor: what to do, what was done, what was printed. No retry happens here."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from node_reporter.executor.job_log import Piece
from node_reporter.executor.parcels.returning import Refused
from node_reporter.executor.runner import NotStarted
from node_reporter.executor.work import Work, WorkUnreadable, parse
from node_reporter.reports.client import TAG, HttpTransport, Transport, Unreachable, parsed
from node_reporter.terminal import printable

FINAL = (400, 401, 403, 404, 409, 413, 422)
"""Statuses that the same request would get again."""
INVALID = "invalid"
"""The code of a request with a field that the server does not know."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the server said to a call: its status, the code of a problem, and of a start that was
    taken up how much of it is free (None: no bound).
    """

    status: int
    code: str = ""
    free_us: int | None = None

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

    @classmethod
    @contextmanager
    def apart(
        cls, node_id: str, executor_key: str, connect: Callable[[], HttpTransport]
    ) -> Generator[ExecutorClient, None, None]:
        """A client with a connection of its own, for a thread of its own."""
        with closing(connect()) as transport:
            yield cls(node_id, executor_key, transport)

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

    # --- files --------------------------------------------------------------------------------

    def workspace(self, lease_id: str) -> Mapping[str, Any]:
        """The renter's list of files. Raises Unreachable, NotStarted."""
        path = f"{self._path}/{lease_id}/workspace"
        answer = self._transport.request("GET", path, self._headers, None)
        if answer.status in FINAL:
            raise NotStarted(f"its folder is not to be had: the server answered {answer.status}")
        if answer.status != 200:
            raise Unreachable(f"answered {answer.status}")
        try:
            found = parsed(answer.body)
        except ValueError as error:
            raise NotStarted(f"its folder cannot be read: {error}") from None
        return found if isinstance(found, dict) else {}

    def pieces(self, lease_id: str, wanted: list[str]) -> dict[str, bytes]:
        """Some of the wanted pieces of its files. Raises Unreachable, NotStarted."""
        said, found = self._post(f"{self._path}/{lease_id}/workspace/pieces", {"sha256": wanted})
        if said.status in FINAL:
            raise NotStarted(f"its files are not to be had: {said.code}")
        if not said.is_done:
            raise Unreachable(f"answered {said.status}")
        try:
            data = [(one["sha256"], base64.b64decode(one["body"])) for one in found["data"]]
        except (KeyError, TypeError, ValueError):
            raise NotStarted("its files cannot be read") from None
        return dict(data)

    def list_results(
        self, lease_id: str, files: list[dict[str, Any]], left_out: list[dict[str, Any]]
    ) -> list[str]:
        """The pieces that the server lacks. A server of the version before takes the files alone:
        what is left out stands in the log of the work, too. Raises Unreachable, returning.Refused.
        """
        path, alone = f"{self._path}/{lease_id}/results", {"files": files}
        told = {**alone, "left_out": left_out} if left_out else alone
        try:
            found = self._taken(path, told)
        except Refused as refused:
            if not (files and left_out and refused.is_of_form):
                raise
            found = self._taken(path, alone)
        missing = found.get("missing")
        if not isinstance(missing, list) or not all(isinstance(one, str) for one in missing):
            raise Refused("the server's answer cannot be read")
        return missing

    def send_results(self, lease_id: str, bodies: list[bytes]) -> None:
        """Raises Unreachable, returning.Refused."""
        data = [base64.b64encode(body).decode() for body in bodies]
        self._taken(f"{self._path}/{lease_id}/results/pieces", {"data": data})

    def _taken(self, path: str, told: Mapping[str, Any]) -> dict[str, Any]:
        said, found = self._post(path, told)
        if said.status in FINAL:
            detail = printable(str(found.get("detail", ""))[:200])
            raise Refused(detail or said.code, is_of_form=said.code == INVALID)
        if not said.is_done:
            raise Unreachable(f"answered {said.status}")
        return found

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
        free_us = found.get("free_start_us")
        said = Said(
            answer.status,
            printable(str(found.get("code", ""))[:100]),
            free_us if type(free_us) is int else None,
        )
        return said, found
