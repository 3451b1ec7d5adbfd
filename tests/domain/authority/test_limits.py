"""What one person may do alone is a number of the policy in force."""

from __future__ import annotations

from dataclasses import replace

from domain.authority.acts import LIMITS, ActLimits
from domain.checked_acts import limits_of
from domain.epochs.epoch import stream_of
from domain.epochs.policy import NETWORK, PolicyGovernance
from tests.domain.scenes.epochs import POLICY, READY, opened
from tests.given import Scene

LOWER = ActLimits(goodwill=7)
VOTED = replace(
    POLICY,
    version=2,
    effective_from_epoch=9,
    governance=PolicyGovernance(approvals=2, notice_epochs=4, alone=LOWER),
)
VOTED_AGAIN = replace(VOTED, version=3, effective_from_epoch=12, governance=POLICY.governance)


def limits(scene: Scene) -> ActLimits:
    return limits_of(scene)


def test_a_network_that_never_voted_has_the_default_limits() -> None:
    assert limits(Scene()) == limits(READY) == LIMITS


def test_a_vote_changes_a_limit_from_the_first_epoch_of_its_policy_on() -> None:
    waiting = READY.given((NETWORK, VOTED), (stream_of(8), opened(8)))
    assert limits(waiting) == LIMITS
    begun = waiting.given((stream_of(9), opened(9)))
    assert limits(begun) == LOWER
    assert limits(begun.given((NETWORK, VOTED_AGAIN))) == LOWER
    ended = begun.given((NETWORK, VOTED_AGAIN), (stream_of(12), opened(12)))
    assert limits(ended) == LIMITS
