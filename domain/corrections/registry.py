"""What the room `corrections` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.corrections import dispute, dispute_opening, dispute_ruling, late_usage, reversal, sla

FILES = (dispute, dispute_opening, dispute_ruling, late_usage, reversal, sla)
FACTS: dict[str, type[Any]] = {
    "dispute.opened.v1": dispute.DisputeOpened,
    "dispute.answered.v1": dispute.DisputeAnswered,
    "dispute.resolved.v1": dispute.DisputeResolved,
    "sla.assessed.v1": sla.SlaAssessed,
    "sla.credited.v1": sla.SlaCredited,
}
