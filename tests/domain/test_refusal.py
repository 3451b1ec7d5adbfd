"""The list of reasons: a code names one rule, for ever."""

from __future__ import annotations

from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.parties.reasons import PartiesReason
from domain.reasons import REASONS, STORED_REFUSALS, reason_of
from domain.refusal import Reason, Refused


def test_every_reason_has_a_code_of_its_own() -> None:
    """An enum makes a second member of one value an alias, which its members do not list."""
    kinds = Reason.__subclasses__()
    assert all(list(kind.__members__.values()) == list(kind) for kind in kinds)
    assert set(REASONS.values()) == {one for kind in kinds for one in kind}
    assert all(reason_of(code).value == code for code in REASONS)


def test_a_reasons_code_is_its_name() -> None:
    assert all(reason.value == reason.name.lower() for reason in REASONS.values())


def test_refusals_by_state_are_kept_and_refusals_of_form_are_not() -> None:
    assert FundsReason.CREDIT_TOO_LOW in STORED_REFUSALS
    assert PartiesReason.SHARE_OUT_OF_RANGE not in STORED_REFUSALS


def test_a_refusal_tells_its_rule_and_what_it_saw() -> None:
    refused = Refused(FleetReason.NODE_BUSY, node_id="node_1")
    assert str(refused) == "node_busy(node_id=node_1)"
    assert refused.facts == {"node_id": "node_1"}
