"""Own the base, rent the burst: what is above a quota runs elsewhere, where the project says so.

The decision to reserve checks again, against the quotas' own streams: where somebody else took the
last of a quota meanwhile, it refuses, and this is asked once more.
"""

from __future__ import annotations

from dataclasses import replace

from domain.group import Holder, must_overflow
from domain.job import JobSubmitted, SubmitJob
from domain.lease import RequestLease
from domain.lease_request import demands_of
from domain.stream import World

Spec = SubmitJob | JobSubmitted


def placed(world: World, request: RequestLease, spec: Spec) -> tuple[RequestLease, Spec]:
    """The request, marked where its quotas are full, and what is to be matched then.

    Raises Refused: QUOTA_EXHAUSTED, where the project's policy is to be refused.
    """
    holder = Holder(
        account_id=request.account_id, client_id=spec.client_id,
        project_id=request.project_id or spec.project_id, key_id=request.key_id,
        pool_id=None if spec.constraints is None else spec.constraints.pool_id,
    )  # fmt: skip
    if not must_overflow(world, holder, spec.gpu_count * spec.share_ppm):
        return request, spec
    demands = demands_of(spec, overflow=True)
    return replace(request, overflow=True), replace(spec, constraints=demands)
