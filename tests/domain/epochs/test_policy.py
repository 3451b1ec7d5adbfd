"""Policy: shares are whole, emission stays within the cap, and nobody changes a running epoch."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.epochs.emission import EmissionSegment, scheduled
from domain.epochs.epoch import stream_of
from domain.epochs.policy import (
    EPOCHS_MAX,
    NETWORK,
    SEGMENTS_MAX,
    PolicyGovernance,
    PolicyPublished,
    PublishPolicy,
    next_version,
    policy_for,
    policy_version,
)
from domain.epochs.reasons import EpochsReason
from domain.money import credit, token
from domain.refusal import Reason, Refused
from domain.rules import decide
from domain.stream import Change
from domain.trust.reasons import TrustReason
from ledger.books.postings import entries_for
from ledger.log import codec, pgbin
from tests.domain.scenes.epochs import CAP, POLICY, READY, opened
from tests.given import Scene


def command(policy: PolicyPublished, **changed: Any) -> PublishPolicy:
    content = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return PublishPolicy(**{**content, **changed})


SECOND = replace(
    POLICY,
    version=2,
    segments=(EmissionSegment(5, 10, 1_000),),
    compute_ppm=100_000,
    availability_ppm=0,
    treasury_ppm=900_000,
    effective_from_epoch=5,
)


def test_the_first_policy_starts_with_the_first_epoch() -> None:
    Scene().when(command(POLICY)).then((NETWORK, POLICY))
    late = command(POLICY, effective_from_epoch=2)
    Scene().when(late).then_refused(TrustReason.POLICY_INVALID)


def refuses(made: PublishPolicy, scene: Scene, reason: Reason) -> None:
    """Whoever approved it: the numbers are refused."""
    with pytest.raises(Refused) as caught:
        next_version(made, scene)
    assert caught.value.reason is reason


def test_only_the_first_policy_is_published_without_a_proposal() -> None:
    READY.when(command(SECOND)).then_refused(EpochsReason.PROPOSAL_NEEDED)


def test_a_later_policy_is_for_an_epoch_that_has_not_begun() -> None:
    assert next_version(command(SECOND), READY) == Change(NETWORK, SECOND)
    begun = READY.given((stream_of(5), opened(5)))
    refuses(command(SECOND), begun, TrustReason.POLICY_INVALID)


def test_policies_take_effect_in_order() -> None:
    refuses(command(SECOND, effective_from_epoch=1), READY, TrustReason.POLICY_INVALID)


def test_the_same_policy_again_changes_nothing_and_another_is_refused() -> None:
    READY.when(command(POLICY, at_us=9, by="key_x")).then_nothing()
    READY.when(command(POLICY, holdback_epochs=4)).then_refused(EpochsReason.POLICY_VERSION)
    READY.when(command(SECOND, version=3)).then_refused(EpochsReason.POLICY_VERSION)


@pytest.mark.parametrize(
    "changed",
    [
        {"epoch_length_us": 0},
        {"epoch_length_us": 1_500_000},
        {"hard_cap": credit(CAP)},
        {"hard_cap": token(-1)},
        {"hard_cap": token(590_557_999_999_999)},
        {"treasury_ppm": 100_001},
        {"compute_ppm": 800_001, "treasury_ppm": -1},
        {"compute_base": "hope"},
        {"holdback_epochs": -1},
        {"hard_cap": token(2**63)},
        {"epoch_length_us": 366 * 86_400_000_000 + 1_000_000},
        {"holdback_epochs": EPOCHS_MAX + 1},
        {"governance": PolicyGovernance(approvals=1, notice_epochs=4)},
        {"governance": PolicyGovernance(approvals=2, notice_epochs=0)},
        {"segments": (EmissionSegment(EPOCHS_MAX, 2, 0),)},
        {"segments": tuple(EmissionSegment(n, 1, 0) for n in range(1, SEGMENTS_MAX + 2))},
    ],
)
def test_numbers_that_cannot_be_kept_are_refused(changed: dict[str, Any]) -> None:
    Scene().when(command(POLICY, **changed)).then_refused(TrustReason.POLICY_INVALID)


def test_the_greatest_policy_that_is_allowed_can_be_stored_and_booked() -> None:
    widest = command(
        POLICY,
        hard_cap=token(2**63 - 1),
        epoch_length_us=366 * 86_400_000_000,
        holdback_epochs=EPOCHS_MAX,
        segments=tuple(
            EmissionSegment(EPOCHS_MAX - SEGMENTS_MAX + n, 1, 10**15) for n in range(SEGMENTS_MAX)
        ),
    )
    (change,) = decide(widest, Scene())
    codec.encode(change.fact, "c", "b")
    pgbin.int8s([units for entry in entries_for(change.fact) for _, units in entry.lines])


@pytest.mark.parametrize(
    ("segments", "reason"),
    [
        ((EmissionSegment(0, 4, 1),), EpochsReason.BAD_SEGMENT),
        ((EmissionSegment(1, 0, 1),), EpochsReason.BAD_SEGMENT),
        ((EmissionSegment(1, 4, 1), EmissionSegment(4, 1, 1)), EpochsReason.SEGMENTS_OVERLAP),
    ],
)
def test_segments_must_make_sense(segments: tuple[EmissionSegment, ...], reason: Reason) -> None:
    Scene().when(command(POLICY, segments=segments)).then_refused(reason)


@pytest.mark.parametrize("changed", [{"hard_cap": token(CAP + 1)}, {"epoch_length_us": 1_000_000}])
def test_cap_and_epoch_length_never_change(changed: dict[str, Any]) -> None:
    refuses(command(SECOND, **changed), READY, TrustReason.POLICY_INVALID)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(2, 9))
def test_no_row_of_policies_ever_plans_more_than_the_cap(
    first: int, second: int, start: int
) -> None:
    one = replace(POLICY, segments=(EmissionSegment(1, 7, first),), hard_cap=token(200))
    two = replace(
        one, version=2, segments=(EmissionSegment(1, 7, second),), effective_from_epoch=start
    )
    scene = Scene().given((NETWORK, one))
    planned = sum(
        scheduled((one if epoch < start else two).segments, epoch) for epoch in range(1, 20)
    )
    if planned > 200:
        refuses(command(two), scene, TrustReason.POLICY_INVALID)
    else:
        assert next_version(command(two), scene)


def test_an_epoch_has_the_newest_policy_that_reached_it() -> None:
    scene = READY.given((NETWORK, SECOND))
    assert [policy_for(scene, epoch).version for epoch in (1, 4, 5, 99)] == [1, 1, 2, 2]
    assert policy_version(scene, 2) == SECOND
    with pytest.raises(Refused) as caught:
        policy_for(Scene(), 1)
    assert caught.value.reason is EpochsReason.POLICY_VERSION
    with pytest.raises(Refused) as caught:
        policy_version(scene, 3)
    assert caught.value.reason is EpochsReason.POLICY_VERSION
