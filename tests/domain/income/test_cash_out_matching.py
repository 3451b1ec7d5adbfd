"""The processor's payouts against our cash-outs: each matched once, all else is a difference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.income.cash_out_matching import (
    MISSING_AFTER_US,
    Difference,
    Listed,
    Ours,
    RecordDifference,
    SettleDifference,
    ids_of,
    match,
)
from domain.income.reasons import IncomeReason
from domain.money import credit
from tests.given import Scene

NOW_US = 10 * MISSING_AFTER_US
TEN = 10_000_000


def ours(name: str = "c1", status: str = "sent", **changes: object) -> Ours:
    told: dict[str, object] = {
        "cash_out_id": name,
        "status": status,
        "units": TEN,
        "reference": f"po_{name}",
        "returned": 0,
        "asked_us": NOW_US,
        **changes,
    }
    return Ours(**told)  # type: ignore[arg-type]


def listed(name: str | None = "c1", reference: str | None = None, units: int = TEN) -> Listed:
    return Listed(name, reference or f"po_{name}", units, 0)


def kinds(found: list[Listed], known: list[Ours]) -> list[tuple[str, str | None, str | None]]:
    told = match(found, known, NOW_US).differences
    return [(each.kind, each.reference, each.cash_out_id) for each in told]


def test_equal_amounts_under_one_id_match() -> None:
    result = match([listed(), listed("c2")], [ours(), ours("c2", "paid")], NOW_US)
    assert [(one.cash_out_id, it.reference) for one, it in result.matched] == [
        ("c1", "po_c1"),
        ("c2", "po_c2"),
    ]
    assert result.differences == ()
    assert ids_of([listed("c2"), listed(), listed(None, "x"), listed()]) == ["c1", "c2"]


def test_an_answer_that_was_lost_is_found_in_the_list() -> None:
    one = ours(status="started", reference=None)
    assert match([listed(reference="po_9")], [one], NOW_US).matched == (
        (one, listed(reference="po_9")),
    )


def test_the_same_payout_listed_twice_is_one() -> None:
    assert match([listed(), listed()], [ours()], NOW_US).differences == ()


def test_whatever_does_not_agree_is_named() -> None:
    assert kinds([listed(None, "x")], []) == [("unknown", "x", None)]
    assert kinds([listed("c9")], []) == [("unknown", "po_c9", "c9")]
    assert kinds([listed(units=TEN + 1)], [ours()]) == [("amount", "po_c1", "c1")]
    for status in ("requested", "failed", "cancelled"):
        assert kinds([listed()], [ours(status=status)]) == [("unexpected", "po_c1", "c1")]
    assert kinds([listed(reference="po_x")], [ours()]) == [("unexpected", "po_x", "c1")]


def test_a_second_payout_of_one_cash_out_is_paid_twice_and_the_first_still_matches() -> None:
    twice = match([listed(reference="po_0"), listed()], [ours()], NOW_US)
    assert [it.reference for _, it in twice.matched] == ["po_c1"]
    assert [(each.kind, each.reference) for each in twice.differences] == [("twice", "po_0")]


def test_what_was_sent_and_is_not_listed_in_time_is_missing() -> None:
    late = NOW_US - MISSING_AFTER_US - 1
    assert kinds([], [ours(asked_us=late)]) == [("missing", "po_c1", "c1")]
    assert kinds([], [ours("c1", "paid", asked_us=late)]) == [("missing", "po_c1", "c1")]
    assert kinds([], [ours(asked_us=late + 1)]) == []
    assert kinds([], [ours(status="failed", asked_us=late)]) == []
    assert kinds([], [ours(status="started", asked_us=late)]) == [], "it is asked for again"


names = st.sampled_from(["c1", "c2", "c3"])
some_listed = st.lists(
    st.builds(
        Listed,
        st.none() | names | st.just("c9"),
        st.sampled_from(["p1", "p2", "p3", "p4"]),
        st.sampled_from([TEN, TEN + 1]),
        st.just(0),
    ),
    max_size=8,
    unique_by=lambda each: each.reference,
)
some_ours = st.lists(
    st.builds(
        Ours,
        names,
        st.sampled_from(["requested", "started", "sent", "paid", "failed", "cancelled"]),
        st.just(TEN),
        st.none() | st.sampled_from(["p1", "p2", "p3"]),
        st.just(0),
        st.none() | st.sampled_from([0, NOW_US]),
    ),
    max_size=3,
    unique_by=lambda each: each.cash_out_id,
)


@given(found=some_listed, known=some_ours)
def test_every_payout_is_matched_once_or_is_a_difference(
    found: list[Listed], known: list[Ours]
) -> None:
    result = match(found, known, NOW_US)
    matched = [payout.reference for _, payout in result.matched]
    different = [each.reference for each in result.differences if each.kind != "missing"]
    assert sorted(matched + [each or "" for each in different]) == sorted(
        each.reference for each in found
    )
    confirmed = [one.cash_out_id for one, _ in result.matched]
    assert len(set(confirmed)) == len(confirmed), "no cash-out is confirmed by two payouts"
    assert all(one.units == payout.units for one, payout in result.matched)
    assert all(one.status in ("started", "sent", "paid") for one, _ in result.matched)


def test_a_difference_is_recorded_once_and_settled_with_a_reason() -> None:
    seen = Difference("twice", "po_0", "c1", TEN, TEN)
    record = RecordDifference(difference=seen, at_us=NOW_US)
    settle = SettleDifference(
        difference_id=seen.difference_id, note="called them", by="op", at_us=NOW_US
    )
    Scene().when(settle).then_refused(IncomeReason.DIFFERENCE_UNKNOWN)
    (change,) = Scene().when(record).changes()
    assert (change.fact.kind, change.fact.expected) == ("twice", credit(TEN))
    recorded = Scene().after(record)
    recorded.when(record).then_nothing()
    done = recorded.after(settle)
    done.when(settle).then_nothing()
    done.when(record).then_nothing()
