"""Jobs: what a renter needs run. The lease carries the work; the job says what the work is.

`workload_sha256` covers image, command and environment references, so the node can show that it
ran what was asked. Secrets never enter: an environment reference names one.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """Stream `job:{job_id}`."""

    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    kind: str  # JOB_KINDS
    image: str | None
    command: tuple[str, ...]
    env_refs: tuple[str, ...]
    workload_sha256: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: tuple[str, ...]  # allowed models; empty: any
    max_price_per_gpu_hour: Amount
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled:
    job_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompleted:
    job_id: str
    at_us: int
