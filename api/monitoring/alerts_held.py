"""What is wrong at this moment: for the operator, by the numbers that `/metrics` shows."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import AnswerModel, Position
from api.door.operation import Resource
from api.monitoring import figures
from api.monitoring.alerts import holding

resource = Resource("alerts")


class AlertHeldAnswer(AnswerModel):
    """One alert that holds by the numbers of now; `of`: which timer, asset or deployment."""

    name: Annotated[str, Field(examples=["TimerFailing"])]
    told: str
    severity: Literal["page", "ticket"]
    of: str | None = None


class ServerFigureAnswer(AnswerModel):
    """One number of the server; `value` as text, whole where it is whole."""

    name: Annotated[str, Field(examples=["tallystick_cash_out_holds"])]
    value: Annotated[str, Field(examples=["0"])]
    of: str | None = None


class AlertsHeldAnswer(AnswerModel):
    """Pages before tickets; `figures` by name."""

    data: list[AlertHeldAnswer]
    figures: list[ServerFigureAnswer]
    position: Position | None = None


@resource.get("/v1/alerts", with_scope("operator"), AlertsHeldAnswer)
def list_alerts(call: Caller) -> Response:
    """Lists what is wrong now, and the numbers of the server by which it is judged.
    An alert that counts requests, or that nothing answers, is Prometheus' alone and not here. A
    message is sent once an alert has held for its time.
    """
    found = figures.read(call.service)
    held = [
        AlertHeldAnswer(name=one.name, told=one.told, severity=one.severity, of=of or None)
        for one, of in holding(found.families)
    ]
    numbers = [
        ServerFigureAnswer(
            name=family.name,
            value=f"{sample.value:.15g}",
            of=", ".join(sample.labels.values()) or None,
        )
        for family in found.families
        for sample in family.samples
    ]
    with call.read() as view:
        told = AlertsHeldAnswer(
            data=sorted(held, key=lambda one: (one.severity, one.name, one.of or "")),
            figures=sorted(numbers, key=lambda one: (one.name, one.of or "")),
        )
        return call.answer(view, told)
