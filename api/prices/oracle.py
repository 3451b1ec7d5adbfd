"""The price of a TOKEN over HTTP: what its sources say, prices as they are published, snapshots."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.auth import everybody, with_scope
from api.door.call import After, Caller
from api.door.models import (
    AnswerModel,
    Count,
    MemberId,
    Moment,
    Position,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, Limit
from api.door.second_person import checked
from domain.duration import SECOND_US
from domain.parties.reasons import PartiesReason
from domain.prices.oracle import LIMITS
from domain.prices.price_feed import (
    FEED,
    NAME_MAX,
    PRICE_MAX,
    SOURCES_MAX,
    Feed,
    ObservePrice,
    PriceSnapshotTaken,
    PriceSource,
    SetPriceSources,
    SourceReading,
    TakePriceSnapshot,
    move_max_bps,
    reading_of,
    sources_of,
)
from domain.prices.reasons import PricesReason
from projections.epochs.rewards import REWARDS, read_snapshots

resource = Resource("oracle")
WRITE = with_scope("operator", "oracle:write")

SourceName = Annotated[str, Field(min_length=1, max_length=NAME_MAX, examples=["exchange-a"])]
MicroUsd = Annotated[int, Field(ge=0, le=PRICE_MAX, description="Micro-dollars per whole TOKEN")]


class PriceSourceRequest(RequestModel):
    """`member_id`: whose keys tell what this source published; one member feeds one source."""

    source: SourceName
    member_id: MemberId

    model_config = with_examples({"source": "exchange-a", "member_id": "member_feeder_a"})


class PriceSourcesRequest(RequestModel):
    """All sources that count from now on. Prices of other sources are not kept."""

    sources: Annotated[list[PriceSourceRequest], Field(max_length=SOURCES_MAX)]

    model_config = with_examples(
        {
            "sources": [
                {"source": "exchange-a", "member_id": "member_feeder_a"},
                {"source": "exchange-b", "member_id": "member_feeder_b"},
                {"source": "exchange-c", "member_id": "member_feeder_c"},
            ]
        }
    )


class PriceObservationRequest(RequestModel):
    """`published_at`: the source's own time, at most a minute before `observed_at`: when it was
    seen, at most a minute ago, or now.
    """

    source: SourceName
    price_micro_usd: MicroUsd
    published_at: Moment
    observed_at: Moment | None = None

    model_config = with_examples(
        {
            "source": "exchange-a",
            "price_micro_usd": 1_870_000,
            "published_at": "2026-11-20T08:00:00Z",
        }
    )


class PriceSnapshotRequest(RequestModel):
    """No fields: `{}`."""

    model_config = with_examples({})


class PriceFeederAnswer(AnswerModel):
    source: SourceName
    member_id: MemberId


class PriceSourcesAnswer(AnswerModel):
    sources: list[PriceFeederAnswer]
    position: Position | None = None


class PriceObservationAnswer(AnswerModel):
    """The newest price of the source; it may be another one than was sent."""

    source: SourceName
    price_micro_usd: MicroUsd
    published_at: Told_at
    observed_at: Told_at
    position: Position | None = None


class PriceSourceAnswer(AnswerModel):
    """A source: its average over the window while it is fresh, and its newest price."""

    source: SourceName
    stale: bool
    twap_micro_usd: MicroUsd | None = None
    price_micro_usd: MicroUsd | None = None
    published_at: Told_at | None = None
    observed_at: Told_at | None = None


class PriceReadingAnswer(AnswerModel):
    """Usable while `health` is healthy; else nothing is burned, and `health` is the reason.

    `held_to`: the snapshot from which the median may be `max_move_bps` away; absent: none.
    """

    health: Literal["healthy", "too_few_sources", "deviation", "moved"]
    median_micro_usd: MicroUsd | None = None
    deviation_bps: Count | None = None
    sources: list[PriceSourceAnswer]
    window_seconds: Count
    max_age_seconds: Count
    max_deviation_bps: Count
    min_sources: Count
    held_to: Count | None = None
    max_move_bps: Count | None = None
    at: Told_at


class PriceSnapshotAnswer(PriceReadingAnswer):
    """What the sources said when a price was needed; burns refer to `snapshot`."""

    snapshot: Count
    by: Short
    position: Position | None = None


class TokenPriceAnswer(PriceReadingAnswer):
    """What the sources say now, and the last snapshot that was taken."""

    last_snapshot: PriceSnapshotAnswer | None = None
    position: Position | None = None


@resource.get("/v1/oracle", everybody(), TokenPriceAnswer)
def read_price(call: Caller) -> Response:
    """Returns the price of a TOKEN now: each source, the median, or why there is no price."""
    feed = call.service.ledger.market.state_of(FEED)
    with call.read() as view:
        return call.answer(view, _price(feed, call.now_us))


@resource.post(
    "/v1/oracle/sources",
    with_scope("operator"),
    PriceSourcesAnswer,
    problems=[PricesReason.PRICE_SOURCES_INVALID],
    checked=True,
)
def set_price_sources(body: PriceSourcesRequest, call: Caller) -> Response:
    """Sets the price sources that count, and the member whose keys feed each of them."""
    command = SetPriceSources(
        sources=tuple(PriceSource(one.source, one.member_id) for one in body.sources),
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(after: After) -> PriceSourcesAnswer:
        feeders = after.state(FEED).feeders
        return PriceSourcesAnswer(
            sources=[PriceFeederAnswer(source=s, member_id=feeders[s]) for s in sorted(feeders)]
        )

    return call.record(lambda: checked(call, command), told)


@resource.post(
    "/v1/oracle/observations",
    WRITE,
    PriceObservationAnswer,
    status=201,
    problems=[
        PricesReason.PRICE_SOURCE_UNKNOWN,
        PricesReason.PRICE_SOURCE_FOREIGN,
        PricesReason.PRICE_TIMES,
        PricesReason.PRICE_KNOWN,
        PricesReason.PRICE_TOO_LOW,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def report_price(body: PriceObservationRequest, call: Caller) -> Response:
    """Records a price that a source published, told by its feeder. Prices are only added, each
    published later than the one before; the same price again changes nothing.
    """
    observed_us = call.now_us if body.observed_at is None else body.observed_at
    command = ObservePrice(
        source=body.source,
        price_micro_usd=body.price_micro_usd,
        published_at_us=body.published_at,
        observed_at_us=observed_us,
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(after: After) -> AnswerModel:
        newest = after.state(FEED).seen[body.source][-1]
        return PriceObservationAnswer(
            source=body.source,
            price_micro_usd=newest.price_micro_usd,
            published_at=moment(newest.published_at_us),
            observed_at=moment(newest.observed_at_us),
        )

    return call.record(lambda: command, told)


@resource.get(
    "/v1/oracle/snapshots", everybody(), page_of(PriceSnapshotAnswer), problems=["cursor_invalid"]
)
def list_price_snapshots(
    call: Caller, order: ByNumber, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists every snapshot in order: all sources at each burn or seal that needed a price."""
    place = call.place(cursor, [0], order)
    with call.read(REWARDS) as view:
        rows = read_snapshots(view.connection, after=place.after[0], way=place.way, limit=limit + 1)
        market = call.service.ledger.market
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.number],
            lambda row: _snapshot(market.read_facts(row.position - 1, 1)[0].fact),
        )


@resource.post("/v1/oracle/snapshots", WRITE, PriceSnapshotAnswer, status=201)
def take_price_snapshot(_body: PriceSnapshotRequest, call: Caller) -> Response:
    """Records the sources' prices now, usable or not. Within 10 s of a healthy snapshot that one
    is the answer.
    """
    command = TakePriceSnapshot(by=call.principal.member_id, at_us=call.now_us)

    def told(after: After) -> PriceSnapshotAnswer:
        last = after.state(FEED).last
        assert last is not None
        return _snapshot(last)

    return call.record(lambda: command, told)


def _price(feed: Feed, now_us: int) -> TokenPriceAnswer:
    reading, held_to = reading_of(feed, now_us), feed.held_to
    return TokenPriceAnswer(
        **_limits(LIMITS),
        held_to=held_to.number if held_to else None,
        max_move_bps=move_max_bps(now_us - held_to.at_us) if held_to else None,
        health=_word(reading.health),
        median_micro_usd=reading.median,
        deviation_bps=reading.deviation_bps,
        at=moment(now_us),
        sources=[_source(one) for one in sources_of(feed, reading, now_us)],
        last_snapshot=None if feed.last is None else _snapshot(feed.last),
    )


def _snapshot(taken: PriceSnapshotTaken) -> PriceSnapshotAnswer:
    return PriceSnapshotAnswer(
        **_limits(taken),
        held_to=taken.held_to,
        max_move_bps=taken.max_move_bps,
        snapshot=taken.number,
        by=taken.by,
        at=moment(taken.at_us),
        health=_word(taken.health),
        median_micro_usd=taken.median_micro_usd,
        deviation_bps=taken.deviation_bps,
        sources=[_source(one) for one in taken.sources],
    )


def _limits(limits: Any) -> dict[str, Any]:
    """Of the network, or as a snapshot was taken under them."""
    return {
        "window_seconds": limits.window_us // SECOND_US,
        "max_age_seconds": limits.max_age_us // SECOND_US,
        "max_deviation_bps": limits.max_deviation_bps,
        "min_sources": limits.min_sources,
    }


def _word(health: str) -> Any:
    return health


def _source(one: SourceReading) -> PriceSourceAnswer:
    return PriceSourceAnswer(
        source=one.source,
        stale=one.is_stale,
        twap_micro_usd=one.twap_micro_usd,
        price_micro_usd=one.price_micro_usd,
        published_at=moment_or_none(one.published_at_us),
        observed_at=moment_or_none(one.observed_at_us),
    )
