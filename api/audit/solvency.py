"""Can everybody be paid? All accounts of the books added up, for anybody to read.

    outside + owed == every claim                        in CREDIT: what came in is somebody's
    owed to parties of TOKEN <= minted or due to be      in TOKEN

Sums by kind of account alone: no party, and no account of one, stands in the answer. It looks at
every account, so a sum is kept for `KEPT_S`: a caller who needs a newer one names its position. A
process adds up one at a time, however many strangers name however new positions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Literal

from fastapi import Response
from pydantic import Field

from api.door import errors
from api.door.amounts import Money
from api.door.auth import everybody
from api.door.call import Caller, View
from api.door.models import AnswerModel, Position
from api.door.operation import Resource
from api.door.positions import min_position
from domain.frozen import replace
from ledger.books import totals

resource = Resource("solvency")
KEPT_S = 5
_turn = Lock()


class SolvencyKindAnswer(AnswerModel):
    """One kind of account: `held` is what the network has, `claimed` whose it is."""

    kind: Annotated[str, Field(examples=["escrow"])]
    side: Literal["held", "claimed"]
    amount: Money


class BooksSolvencyAnswer(AnswerModel):
    """`balanced`: what is held equals what is claimed, of each asset."""

    data: list[SolvencyKindAnswer]
    held: list[Money]
    claimed: list[Money]
    balanced: bool
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """A sum, the position it reflects, and when it was made by a clock that only runs forward."""

    told: BooksSolvencyAnswer
    position: int
    made_s: float


@resource.get("/v1/solvency", everybody(), BooksSolvencyAnswer)
def read_solvency(call: Caller) -> Response:
    """Returns what the network holds, and whose it is: all accounts by kind, added up.
    Anybody may read it. What is in a bank, a reader can only believe: the books say what was
    confirmed, and every line of them is in the log.
    """
    with call.read() as view:
        state = call.request.app.state
        kept: _Kept | None = getattr(state, "solvency", None)
        asked = min_position(call.request.headers) or 0
        is_enough = kept is not None and asked <= kept.position
        is_fresh = kept is not None and time.monotonic() - kept.made_s < KEPT_S
        if not (is_enough and is_fresh) and _turn.acquire(blocking=False):
            try:
                kept = state.solvency = _added_up(view)
            finally:
                _turn.release()
        elif kept is None or not is_enough:
            raise errors.problem("projection_behind", Retry_After="1")
        return call.answer(replace(view, position=kept.position), kept.told)


def _added_up(view: View) -> _Kept:
    rows = totals.by_kind(view.connection)
    is_even = not any(totals.unbalanced(view.connection).values())
    return _Kept(_told(rows, balanced=is_even), view.position, time.monotonic())


def _told(rows: list[totals.KindTotal], *, balanced: bool) -> BooksSolvencyAnswer:
    return BooksSolvencyAnswer(
        data=[
            SolvencyKindAnswer(
                kind=row.kind,
                side="held" if row.is_held else "claimed",
                amount=Money(asset=row.asset, units=str(row.units)),
            )
            for row in rows
        ],
        held=_sums(rows, is_held=True),
        claimed=_sums(rows, is_held=False),
        balanced=balanced,
    )


def _sums(rows: list[totals.KindTotal], *, is_held: bool) -> list[Money]:
    return [
        Money(
            asset=asset,
            units=str(sum(r.units for r in rows if (r.asset, r.is_held) == (asset, is_held))),
        )
        for asset in totals.SHOWN
    ]
