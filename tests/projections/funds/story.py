"""Programs, grants that are given twice and expire twice, payers that come and go, budgets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.funds import budget, deposit, promotion
from domain.funds import funding as fund
from domain.governance import grant
from domain.lease import lease
from domain.money import credit, token
from domain.stream import Stream

OPERATOR, RENTER, OTHER = "acct_operator", "acct_granted", "acct_funded"


def funding(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """Every fact of promotions, payers and budgets, some of them more than once."""
    at: dict[str, Any] = {"by": "mem_a", "at_us": at_us}
    yield (
        Stream("deposit", "dep_fund"),
        deposit.DepositConfirmed(
            deposit_id="dep_fund",
            account_id=OPERATOR,
            source="cash",
            amount=credit(900),
            reference="fund",
            confirmed_by="mem_a",
            at_us=at_us,
        ),
    )
    for program in ("spring", "summer"):
        stream = promotion.program_stream(program)
        yield (
            stream,
            promotion.PromotionOpened(
                program=program, sponsor_account_id=OPERATOR, amount=credit(400), **at
            ),
        )
        for who, units in ((RENTER, 100), (OTHER, 50), (RENTER, 20)):
            yield (
                fund.stream_of(who),
                fund.PromotionGranted(
                    account_id=who,
                    program=program,
                    amount=credit(units),
                    priority=1,
                    expires_at_us=at_us + 10 if program == "spring" else None,
                    **at,
                ),
            )
    for units in (30, 15):
        yield (
            fund.stream_of(RENTER),
            fund.PromotionExpired(
                account_id=RENTER, program="spring", amount=credit(units), at_us=at_us + 11
            ),
        )
    yield (
        promotion.program_stream("summer"),
        promotion.PromotionClosed(
            program="summer", sponsor_account_id=OPERATOR, amount=credit(230), **at
        ),
    )
    link: dict[str, Any] = {"account_id": OTHER, "payer_account_id": RENTER, **at}
    yield fund.stream_of(OTHER), fund.PayerSet(**link)
    yield fund.stream_of(OTHER), fund.PayerEnded(**link)
    yield fund.stream_of(OTHER), fund.PayerSet(**link)
    yield from _budgets(at_us)
    yield (
        grant.stream_of("grant_1"),
        grant.GrantProposed(
            grant_id="grant_1",
            account_id=RENTER,
            total=token(10),
            milestones=(grant.Milestone("a", 100_000),),
            governors=1,
            stated_micro_usd=None,
            **at,
        ),
    )
    lease_id = f"lease_{2:032x}"
    yield (
        Stream("lease", lease_id),
        lease.LeaseRestarted(lease_id=lease_id, as_lease_id=f"lease_{3:032x}", at_us=at_us),
    )


def _budgets(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    whose: dict[str, Any] = {"account_id": RENTER, "scope": "project", "target": "p"}
    for target, monthly in (("p", 500), ("q", 7), ("p", 600), ("q", None)):
        yield (
            budget.stream_of(RENTER, "project", target),
            budget.BudgetSet(
                account_id=RENTER,
                scope="project",
                target=target,
                monthly=None if monthly is None else credit(monthly),
                by="mem_a",
                at_us=at_us,
            ),
        )
    stream = budget.stream_of(RENTER, "project", "p")
    yield (
        stream,
        budget.BudgetHeld(
            **whose, month="2026-11", lease_id="lease_1", amount=credit(500), used=500, at_us=at_us
        ),
    )
    yield (
        stream,
        budget.BudgetAlerted(
            **whose, month="2026-11", percent=80, used=500, limit=600, at_us=at_us
        ),
    )
    yield (
        stream,
        budget.BudgetReleased(
            **whose, lease_id="lease_1", amount=credit(90), is_final=True, at_us=at_us
        ),
    )
