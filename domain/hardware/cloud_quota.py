"""How many jobs of one GPU each can run under the quotas of a cloud region?

    free(quota)  =  max(0, limit - used)
    jobs         =  min(free(GPUs of the model), free(CPUs) // CPUs per job, free(SSD) // 375 GB)

Row C-26, conformance suite `cloud_quota`. A cloud may lower a limit below what is used.
"""

from __future__ import annotations

from typing import Literal

from domain.hardware.reasons import HardwareReason
from domain.record import dataclass
from domain.refusal import Refused

Limit = Literal["gpus", "cpus", "local_ssd"]
CPUS_PER_JOB = {"P100": 6, "V100": 8, "T4": 8, "A100": 12}
"""Of a job on one GPU of this model."""
SSD_GB_PER_JOB = 375


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of something a cloud lets an account use in a region, and how much it uses."""

    limit: int
    used: int

    @property
    def free(self) -> int:
        return max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class Runnable:
    """`limited_by`: what stops the next job."""

    jobs: int
    limited_by: tuple[Limit, ...]


def runnable_jobs(model: str, gpus: Quota, cpus: Quota, local_ssd_gb: Quota) -> Runnable:
    """How many more jobs can start on GPUs of this model, and what stops the next one.

    Raises Refused: UNKNOWN_GPU.
    """
    if model not in CPUS_PER_JOB:
        raise Refused(HardwareReason.UNKNOWN_GPU, gpu=model)
    bounds: dict[Limit, int] = {
        "gpus": gpus.free,
        "cpus": cpus.free // CPUS_PER_JOB[model],
        "local_ssd": local_ssd_gb.free // SSD_GB_PER_JOB,
    }
    jobs = min(bounds.values())
    return Runnable(jobs, tuple(name for name, bound in bounds.items() if bound == jobs))
