"""What the server says about this node: its phase, its verdict, its usage, what it earned today.

For `doctor` and the local page: five reads with the node's own key, and nothing is changed by them.
Whatever comes back is text from elsewhere: it is shortened, and only what has the right form is
taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from node_reporter.clock import Clock
from node_reporter.machine.config import Settings
from node_reporter.reports.client import Transport, Unreachable, UsageClient, parsed
from node_reporter.reports.reports import key_id_of
from node_reporter.terminal import printable

ROWS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Reported time of a lease that earned nothing, and the rule it broke."""

    lease_id: str
    rule: str
    us: int
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """What was earned since midnight UTC, in micro-credits; `gpu_us` of whole GPUs."""

    day: str
    gpu_us: int
    earned_units: int
    burn_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Of one GPU-hour at the price of an open offer, in micro-credits: the owner's part."""

    gpu_class: str
    price_units: int
    fee_units: int
    owner_units: int
    is_burned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an hour of this node brings its owner, and when that can be spent."""

    parts: tuple[Part, ...]
    held_back_s: int
    minimum_units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """One look. `why` is empty where the server answered this node as one of its own."""

    why: str = ""
    code: str = ""
    node_id: str = "NODE"
    rtt_us: int | None = None
    offset_us: int | None = None
    acked_seq: int | None = None
    phase: str | None = None
    quarantined: bool = False
    joinable: bool | None = None
    sellable: bool | None = None
    failing: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    flagged: Mapping[int, str] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    today: Today | None = None
    terms: Terms | None = None


def look(settings: Settings, transport: Transport, clock: Clock) -> ServerView:
    """Ask. Raises nothing: a server that does not answer is an answer here."""
    client = UsageClient(
        settings.node_id, key_id_of(settings.signing_key), transport, clock, settings.node_key
    )
    try:
        head = client.head()
        offset = client.offset
        node_status, node = _get(settings, transport, "")
        _, today = _get(settings, transport, "/earnings/today")
    except Unreachable as error:
        why = f"no answer: {printable(str(error))[:200]}"
        return ServerView(why=why, code="unreachable", node_id=settings.node_id)
    try:
        _, usage = _get(settings, transport, "/usage")
    except Unreachable:
        usage = {}  # a long list of what earned nothing costs the list, not the look
    try:
        _, terms = _get(settings, transport, "/earnings/per-hour")
    except Unreachable:
        terms = {}
    rtt_us = None if offset is None else offset.rtt_us
    offset_us = None if offset is None else offset.offset_us
    if node_status != 200:
        code = _text(node.get("code")) or str(node_status)
        why = f"{code}: {_text(node.get('detail'))}"
        return ServerView(
            why=why, code=code, node_id=settings.node_id, rtt_us=rtt_us, offset_us=offset_us
        )
    verdict = node.get("verdict") if isinstance(node.get("verdict"), dict) else {}
    assert isinstance(verdict, dict)
    return ServerView(
        node_id=settings.node_id,
        rtt_us=rtt_us,
        offset_us=offset_us,
        acked_seq=head.acked_seq,
        phase=_text(node.get("phase")),
        quarantined=node.get("quarantined") is True,
        joinable=_truth(verdict.get("joinable")),
        sellable=_truth(verdict.get("sellable")),
        failing=_names(verdict.get("failing")),
        waived=_names(verdict.get("waived")),
        flagged=_flagged(usage),
        refused=_refused(usage),
        today=_today(today),
        terms=_terms(terms),
    )


def _get(settings: Settings, transport: Transport, path: str) -> tuple[int, dict[str, Any]]:
    headers = {"Accept": "application/json", "Authorization": f"Bearer {settings.node_key}"}
    answer = transport.request("GET", f"/v1/nodes/{settings.node_id}{path}", headers, None)
    try:
        document = parsed(answer.body)
    except ValueError:
        document = {}
    return answer.status, document if isinstance(document, dict) else {}


def _flagged(usage: dict[str, Any]) -> dict[int, str]:
    rows = [one for one in _rows(usage.get("flagged")) if type(one.get("seq")) is int]
    return {one["seq"]: _text(one.get("rule")) for one in rows}


def _refused(usage: dict[str, Any]) -> tuple[Refused, ...]:
    found = [
        Refused(
            lease_id=_text(one.get("lease_id")),
            rule=_text(one.get("rule")),
            us=_units(one.get("microseconds")),
            until=_text(one.get("until")),
        )
        for one in _rows(usage.get("refused"))
    ]
    return tuple(found)


def _today(told: dict[str, Any]) -> Today | None:
    if not isinstance(told.get("earned"), dict) or not isinstance(told.get("burn"), dict):
        return None
    return Today(
        day=_text(told.get("day"))[:10],
        gpu_us=_units(told.get("gpu_us")),
        earned_units=_units(told["earned"].get("units")),
        burn_units=_units(told["burn"].get("units")),
    )


def _terms(told: dict[str, Any]) -> Terms | None:
    minimum, held = told.get("cash_out_minimum"), told.get("held_back_seconds")
    if not isinstance(minimum, dict) or type(held) is not int:
        return None
    parts = [
        Part(
            gpu_class=_text(one.get("gpu_class")),
            price_units=_of_money(one.get("price")),
            fee_units=_of_money(one.get("fee")),
            owner_units=_of_money(one.get("provider")),
            is_burned=one.get("settlement") == "burn",
        )
        for one in _rows(told.get("data"))
    ]
    return Terms(parts=tuple(parts), held_back_s=held, minimum_units=_of_money(minimum))


def _of_money(value: Any) -> int:
    return _units(value.get("units")) if isinstance(value, dict) else 0


def _rows(value: Any) -> list[dict[str, Any]]:
    rows = value if isinstance(value, list) else []
    return [one for one in rows if isinstance(one, dict)][:ROWS_MAX]


def _names(value: Any) -> tuple[str, ...]:
    return tuple(_text(one) for one in value[:ROWS_MAX]) if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return printable(value[:200]) if isinstance(value, str) else ""


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _units(value: Any) -> int:
    """A number as the API writes large ones: in digits, as text."""
    is_number = isinstance(value, str) and value.isascii() and value.isdecimal()
    return int(value) if is_number and len(value) <= 30 else 0
