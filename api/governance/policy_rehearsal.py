"""A proposal rehearsed over HTTP: what past epochs would have paid under it.

As `tallystick policy dry-run`, on the server's own epoch files and bounded: a long past belongs
into a process of its own.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from api.door.amounts import Money, SignedMoney
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.errors import problem
from api.door.models import AnswerModel, Count, Position, RequestModel, with_examples
from api.door.operation import Resource
from api.governance import rehearsal

resource = Resource("policies")

BYTES_MAX = 4_000_000
"""Of all epoch files together: some 15,000 nodes times epochs, a second or two."""
NAMED_MAX = 100

EXAMPLE = {
    "version": 2,
    "epoch_length_us": 604_800_000_000,
    "segments": [[1, 52, "590558000000000"]],
    "hard_cap": "590558000000000",
    "compute_ppm": 500_000,
    "availability_ppm": 400_000,
    "treasury_ppm": 100_000,
    "compute_base": "burned_value",
    "holdback_epochs": 4,
    "effective_from_epoch": 9,
}


class PolicyRehearsalRequest(RequestModel):
    """`document`: a proposal with `terms` as JSON, or a policy like that of an epoch file. Epochs
    before `from_epoch` keep their policy. `limit`: so many winners, and losers, are named.
    """

    document: dict[str, Any]
    from_epoch: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    limit: Annotated[int, Field(ge=0, le=NAMED_MAX)] = 10

    model_config = with_examples({"document": EXAMPLE}, {"document": EXAMPLE, "limit": 3})


class RewardDifferenceAnswer(AnswerModel):
    """What an account got, and would have got."""

    account_id: str
    was: Money
    would_be: Money
    delta: SignedMoney


class RehearsalTotalsAnswer(AnswerModel):
    """The last three were paid to no account, by reason; they were carried on or returned."""

    rewards: Money
    minted: Money
    emission: Money
    release: Money
    returned: Money
    treasury: Money
    rounding: Money
    zero_weight: Money
    cap: Money


class RehearsedEpochAnswer(AnswerModel):
    """`broken`: what does not hold of it; empty unless there is a bug."""

    epoch: Count
    accounts: Count
    accounts_changed: Count
    largest_difference: RewardDifferenceAnswer | None = None
    was: RehearsalTotalsAnswer
    would_be: RehearsalTotalsAnswer
    broken: list[str]


class PolicyRehearsalAnswer(AnswerModel):
    """`holds`: every sum came out and every epoch file is what its own cut gives. `is_same`: no
    reward would have changed. `kept_emission_plan`: epochs for which the proposal plans no
    emission. `stopped`: why a next epoch could not follow.
    """

    epochs: Count
    first_epoch: Count | None = None
    last_epoch: Count | None = None
    holds: bool
    is_same: bool
    accounts: Count
    accounts_gaining: Count
    accounts_losing: Count
    largest_difference: RewardDifferenceAnswer | None = None
    was: RehearsalTotalsAnswer
    would_be: RehearsalTotalsAnswer
    winners: list[RewardDifferenceAnswer]
    losers: list[RewardDifferenceAnswer]
    by_epoch: list[RehearsedEpochAnswer]
    kept_emission_plan: list[Count]
    not_reproduced: list[Count]
    stopped: str | None = None
    position: Position | None = None


@resource.post(
    "/v1/policies/dry-run",
    with_scope("operator"),
    PolicyRehearsalAnswer,
    records=False,
    problems=["invalid", "rehearsal_too_large"],
)
def rehearse_policy(body: PolicyRehearsalRequest, call: Caller) -> Response:
    """Settles all past epochs again under a proposal, and compares to the unit."""
    folder = call.service.settings.data_dir / "epochs"
    try:
        policy = rehearsal.proposed_policy(body.document)
        files = rehearsal.past_files(folder) if folder.is_dir() else []
        if sum(file.stat().st_size for file in files) > BYTES_MAX:
            raise problem("rehearsal_too_large", f"at most {BYTES_MAX} bytes of epoch files")
        found = rehearsal.run(policy, files, first=body.from_epoch)
    except rehearsal.NothingToRehearse as error:
        raise problem("invalid", str(error)) from error
    told = PolicyRehearsalAnswer.model_validate(rehearsal.told_of(found, body.limit))
    with call.read() as view:
        return call.answer(view, told)
