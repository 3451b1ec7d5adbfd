"""One call on its way through: who asks, under which key, and how it is answered.

An endpoint builds commands and hands them to `record`, or opens views with `read`. No endpoint
touches the door of the log, the idempotency row, a cursor or a header itself.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.door import errors, positions
from api.door.auth import EXECUTOR, NODE, Principal
from api.door.errors import Problem
from api.door.idempotency import fingerprint
from api.door.lines.turns import AtWork
from api.door.models import AnswerModel, FactAnswer
from api.door.operation import Operation
from api.door.paging import LAST, Cursors, Order, Place, next_link
from api.door.positions import AsOf
from api.door.preconditions import read_if_match
from api.process import secret_files
from api.process.lease_desk import Opening, Round
from api.process.service import Service
from domain.frozen import replace
from domain.reasons import STORED_REFUSALS
from domain.refusal import Reason, Refused
from domain.stream import Change, S, Stream, World, derive_id
from ledger.beside import secret_salts
from ledger.log.handle import Answer, CommandKey, Outcome, Reads, RefusedBefore, StateOf
from projections import runner, tables
from projections.income import statements
from projections.metering.resources import RESOURCES
from projections.metering.usage import USAGE
from projections.read import Way
from projections.runner import Connection, Projection

T = TypeVar("T")
REPLAYED = "Idempotent-Replayed"
KEYS_CHANGED = frozenset({"account", "executor", "node", "operator"})
LIVE = (USAGE, RESOURCES)
"""Views of signed reports that a read brings up to date; others are followed by a timer."""
"""Streams whose facts change who may call."""


class States(Protocol):
    """What an answer is made from."""

    def state(self, stream: Stream[S]) -> S: ...


@dataclass(frozen=True, slots=True)
class After:
    """The world as it will be once these changes are recorded: what an answer is made from."""

    changes: Sequence[Change]
    state_of: StateOf

    @classmethod
    def now(cls, service: Service) -> After:
        """The world as it is, where nothing is recorded."""
        return cls((), service.ledger.market.state_of)

    def state(self, stream: Stream[S]) -> S:
        """The state of a stream with the changes in it."""
        state: S = self.state_of(stream)
        return state


@dataclass(frozen=True, slots=True)
class View:
    """Open views: a connection, the position they reflect, and the past position asked for."""

    connection: Connection
    position: int
    as_of: int | None = None


@dataclass(slots=True)
class Call:
    """One admitted call. `key` is None where the operation records nothing."""

    service: Service
    request: Request
    principal: Principal
    operation: Operation
    key: str | None
    body: bytes
    now_us: int
    account: str  # scopes the key; set by the one call that has no account of its own
    is_forgotten: bool = False  # the secret of this request was shown too long ago

    def if_match(self) -> int:
        """The version that the caller has read of what they change. Raises Problem: 428, 400."""
        return read_if_match(self.request.headers)

    def secret(self, purpose: str, *parts: str) -> bytes:
        """64 bytes that only this server can name: the same for 24 hours when the request is sent
        again, and after that others, which are not shown (`is_forgotten`).
        """
        assert self.key is not None
        told = (purpose, self.account, self.key, *parts)
        name = secret_files.derive(self.service.server_key, "secret-salt/v1", *told)[:32]
        with self.service.connection() as connection:
            salt = secret_salts.find(connection, name, self.now_us)
            if salt is None and self.is_answered():
                self.is_forgotten = True
                return os.urandom(64)
            salt = salt or secret_salts.keep(connection, name, os.urandom(32), self.now_us)
        return secret_files.derive(self.service.server_key, *told, salt.hex())

    # --- recording ---------------------------------------------------------------------------

    def is_answered(self) -> bool:
        """Whether this request was answered before. Raises Problem: its stored refusal."""
        return self._known(self._command_key()) is not None

    def id(self, kind: str, ordinal: int = 0) -> str:
        """A server-made id, equal on every replay of this request."""
        assert self.key is not None
        return derive_id(kind, self.account, self.key, ordinal)

    def record(
        self,
        commands: Callable[[], Any],
        told: Callable[[After], AnswerModel],
        *,
        reveal: Callable[[], dict[str, Any]] | None = None,
        beside: Callable[[Connection], None] | None = None,
        again_on: frozenset[Reason] = frozenset(),
        reads: Reads | None = None,
        tag: Callable[[dict[str, Any]], int] | None = None,
    ) -> Response:
        """Record what the commands lead to and answer; a request known already is answered alike.

        `commands` is asked only when the request is new, at every attempt, and may raise Refused;
        `again_on` names refusals after which it is asked once more. `told` makes the stored
        answer; `reveal` adds what is shown for 24 hours and never stored. `beside` writes what
        stands beside the log, once the commands are decided and before they are recorded: no fact
        is ever without it. `reads`: streams to load together.
        `tag` takes the version for the ETag out of the answer.
        """
        key = self._command_key()
        outcome = self._known(key) or self._handle(key, commands, told, beside, again_on, reads)
        if {change.stream.kind for change in outcome.changes} & KEYS_CHANGED:
            self.service.keys_changed()
        headers = {positions.POSITION: str(outcome.position)}
        if outcome.replayed:
            headers[REPLAYED] = "true"
        body = {**json.loads(outcome.answer.body), "position": outcome.position}
        if tag is not None:
            headers["ETag"] = errors.etag(tag(body))
        if reveal is not None and not self.is_forgotten:
            body |= reveal()
        return _json(body, outcome.answer.status, headers)

    async def record_at_desk(
        self,
        commands: Callable[[Round], list[Any]],
        told: Callable[[States], AnswerModel],
        *,
        again_on: frozenset[Reason],
    ) -> Response:
        """`record` for an opening of a lease: in a round with all that wait, or in its own."""
        key = self._command_key()
        assert key is not None, "openings are recorded"

        def answer(world: World) -> Answer:
            return _stored(self.operation.status, told(world))

        opening = Opening(self.principal.account_id, key, self.now_us, commands, answer)
        at_work: AtWork = self.request.state.at_work
        served = asyncio.wrap_future(self.service.lease_desk.open(opening))
        outcome = await at_work.wait_for(served)
        if outcome is None:
            await at_work.begin_again()
            alone = partial(self.record, lambda: commands(self.round()), told, again_on=again_on)
            return await run_in_threadpool(alone)
        headers = {positions.POSITION: str(outcome.position)}
        told_at = b',"position":%d}' % outcome.position  # it is stored without one
        content = outcome.answer.body.removesuffix(b"}") + told_at
        return Response(content, outcome.answer.status, headers, media_type="application/json")

    def round(self) -> Round:
        """A round of this call alone, on the states as they are now."""
        return Round.of_one(self.service.ledger.world(), self.now_us, is_answered=True)

    def _handle(
        self,
        key: CommandKey | None,
        commands: Callable[[], Any],
        told: Callable[[After], AnswerModel],
        beside: Callable[[Connection], None] | None,
        again_on: frozenset[Reason],
        reads: Reads | None,
    ) -> Outcome:
        ledger, now_us = self.service.ledger, self.now_us
        code = self.operation.status

        def answer(changes: Sequence[Change], state_of: StateOf) -> Answer:
            if beside is not None:
                with self.service.connection() as connection:
                    beside(connection)
            return _stored(code, told(After(changes, state_of)))

        try:
            return ledger.handle(
                commands, key=key, now_us=now_us, answer=answer, again_on=again_on, reads=reads
            )
        except Refused as refused:
            raise self._refusal(refused, key) from None

    def _known(self, key: CommandKey | None) -> Outcome | None:
        """The stored answer of this request. Raises the stored refusal."""
        if key is None:
            return None
        try:
            return self.service.ledger.told_before(key)
        except Refused as refused:
            raise self._refusal(refused, key) from None

    def _refusal(self, refused: Refused, key: CommandKey | None) -> Problem:
        """The problem of a refusal; one that is kept names its position, the first time too."""
        problem = errors.of_refusal(refused)
        if key is None or refused.reason not in STORED_REFUSALS:
            return problem
        stored = self.service.ledger.stored(key)
        headers = {} if stored is None else {positions.POSITION: str(stored.position)}
        if isinstance(refused, RefusedBefore):
            headers[REPLAYED] = "true"
        problem.headers = {**problem.headers, **headers}
        return problem

    def _command_key(self) -> CommandKey | None:
        if self.key is None:
            return None
        scope = self.request.scope
        path = scope.get("raw_path") or scope["path"].encode()
        if scope["query_string"]:
            path += b"?" + scope["query_string"]
        mark = fingerprint(self.request.method, path, self.principal.name, self.body)
        assert self.account, "a recording call has an account"
        return CommandKey(self.account, self.key, mark)

    # --- reading -----------------------------------------------------------------------------

    @contextmanager
    def read(
        self, *projections: Projection, as_of: AsOf | None = None
    ) -> Generator[View, None, None]:
        """Open views that have reached what the caller asks for.

        Raises Problem: 503 projection_behind, 400 as_of_unsupported for a moment not yet written.
        """
        wanted = positions.min_position(self.request.headers) or 0
        lane = positions.min_usage(self.request.headers)
        with self.service.connection() as connection:
            # The door has waited for it: a caller without the door is told at once. Where nothing
            # is recorded, the views stand where they stand, and the answer says where.
            reached = self.service.follow(connection, projections, least=wanted)
            for one in projections:
                if one in LIVE:
                    self._follow_lanes(connection, one, lane)
            yield View(connection, reached, self._past(connection, reached, as_of))

    def _follow_lanes(
        self, connection: Connection, live: Projection, lane: tuple[int, int] | None
    ) -> None:
        while runner.step_lanes(connection, live):
            pass
        if lane and tables.lane_position_of(connection, live, lane[0]) < lane[1]:
            raise errors.problem("projection_behind", Retry_After="1")

    def _past(self, connection: Connection, head: int, as_of: AsOf | None) -> int | None:
        if as_of is None or as_of.is_now:
            return None
        if as_of.at_us is not None:
            row = connection.execute(
                "SELECT public.market_position_at(%s)", (as_of.at_us,)
            ).fetchone()
            assert row is not None
            return int(row[0])
        assert as_of.position is not None
        if as_of.position > head:
            raise errors.problem("as_of_unsupported", f"the log ends at {head}")
        return as_of.position

    def place(self, cursor: str | None, zero: list[Any], order: Order | None = None) -> Place:
        """Where a page begins, and in which direction it reads. Raises Problem: 400
        cursor_invalid.
        """
        newest = order is not None and order.newest
        start = [LAST, *zero[1:]] if newest else zero
        cursors: Cursors = self.request.app.state.cursors
        place = cursors.read(self.request, self.principal.name, cursor, start)
        return place if order is None else replace(place, way=self._way(order))

    def _way(self, order: Order) -> Way:
        """`since` is a moment of recording: what came before it has a lower position."""
        if order.since_us is None:
            return Way(order.newest)
        with self.service.connection() as connection:
            before = statements.read_position_at(connection, order.since_us - 1)
        return Way(order.newest, before)

    def page(
        self,
        view: View,
        place: Place,
        rows: Sequence[T],
        limit: int,
        key: Callable[[T], list[Any]],
        told: Callable[[T], AnswerModel],
    ) -> Response:
        """One page; `rows` holds one more than `limit` when there is another one."""
        shown, more, headers = self.cut(view, place, rows, limit, key)
        position = view.position if view.as_of is None else view.as_of
        data = ",".join([told(row).model_dump_json(exclude_none=True) for row in shown])
        after = _compact({**more, "position": position}).removeprefix("{")
        content = f'{{"data":[{data}],{after}'.encode()
        headers = {positions.POSITION: str(position), **headers}
        return Response(content, self.operation.status, headers, media_type="application/json")

    def cut(
        self, view: View, place: Place, rows: Sequence[T], limit: int, key: Callable[[T], list[Any]]
    ) -> tuple[Sequence[T], dict[str, Any], dict[str, str]]:
        """The rows of one page, and what the answer's body and headers say of the next one."""
        shown = rows[:limit]
        if len(rows) <= limit:
            return shown, {"has_more": False}, {}
        position = view.position if place.first_position is None else place.first_position
        cursor = self.request.app.state.cursors.make(
            self.request, self.principal.name, key(shown[-1]), position
        )
        more = {"has_more": True, "next_cursor": cursor}
        return shown, more, {"Link": next_link(self.request, cursor)}

    def answer(
        self, view: View, told: AnswerModel | dict[str, Any], headers: dict[str, str] | None = None
    ) -> Response:
        """An answer that says which position it reflects; one fact keeps the position it has."""
        body = _plain(told) if isinstance(told, AnswerModel) else told
        position = view.position if view.as_of is None else view.as_of
        if not isinstance(told, FactAnswer):
            body["position"] = position
        headers = {positions.POSITION: str(position), **(headers or {})}
        return _json(body, self.operation.status, headers)

    def answer_if_new(self, view: View, told: AnswerModel) -> Response:
        """`answer` for who asks again and again: 304 while nothing but the position has changed.

        The ETag covers what is told and not the position, which moves with every fact of anybody.
        """
        body = _plain(told)
        body.pop("position", None)
        content = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        tag = f'"{sha256(content.encode()).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        known = self.request.headers.get("if-none-match", "")
        if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
            headers[positions.POSITION] = str(view.position)
            return Response(None, 304, headers)
        return self.answer(view, body, headers)

    def node_of_caller(self, node_id: str) -> bool:
        """Whether the caller is this node."""
        return self.principal.kind == NODE and self.principal.account_id == node_id

    def executor_of_caller(self, node_id: str) -> bool:
        """Whether the caller is the executor of this node."""
        return self.principal.kind == EXECUTOR and self.principal.account_id == node_id


def _stored(status: int, told: AnswerModel) -> Answer:
    return Answer(status, told.model_dump_json(exclude_none=True).encode())


def _plain(told: AnswerModel) -> dict[str, Any]:
    return told.model_dump(mode="json", exclude_none=True)


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _json(body: dict[str, Any], status: int, headers: dict[str, str]) -> Response:
    content = _compact(body).encode()
    return Response(content, status, headers, media_type="application/json")


async def _call_of(request: Request) -> Call:
    call: Call = request.state.call
    return call


Caller = Annotated[Call, Depends(_call_of)]
