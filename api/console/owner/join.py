"""A machine comes in: which step is the next one, from an account to the first lease.

Two ways in: a region lets machines join by a code, or by the procedure of admission with a boot
drive. The page shows whatever the API says is done, and never more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from api.console.owner import causes
from api.console.owner.own import ROWS_MAX, TIMES, machine, nodes_of, own_alone
from api.console.visits import entering
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit

ARRIVING = ("joining", "confirmed", "provisioning", "maintenance")
FIRMWARE = {
    "tpm_cleared": "Clear the TPM in the firmware's setup",
    "csm_off": "Turn CSM off (boot by UEFI alone)",
    "secure_boot_off": "Turn Secure Boot off",
}


@dataclass(frozen=True, slots=True)
class Step:
    """`state`: done, now or later; `path` and `name`: where it is done."""

    heading: str
    says: str
    state: str
    path: str = ""
    name: str = ""


async def show(visit: Visit) -> Response:
    """`/nodes/new`"""
    return await _page(visit, None, None)


async def take(visit: Visit) -> Response:
    """Issue a join code, or ask for admission. The code is shown once, and is nowhere else."""
    region_id = visit.form.get("region_id", "")
    try:
        if visit.form.get("what") == "admission":
            body = {
                "region_id": region_id,
                "vendor": visit.form.get("vendor", ""),
                "model": visit.form.get("model", ""),
                "gpus": entering.whole(visit.form.get("gpus", ""), "the number of GPUs", 1, 64),
            }
            made = await visit.record("/v1/admissions", body)
            return visit.to(f"/nodes/new/{made['admission_id']}")
        code = await visit.record("/v1/nodes/join-codes", {"region_id": region_id})
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, None, problem)
    return await _page(visit, code, None)


async def _page(visit: Visit, code: Told | None, problem: Refused | None) -> Response:
    providers = await visit.read("/v1/providers", account_id=own_alone(visit), limit=ROWS_MAX)
    mine = {one["provider_id"] for one in providers["data"]}
    regions = await visit.read("/v1/regions", limit=ROWS_MAX)
    admissions = await visit.read("/v1/admissions", account_id=own_alone(visit), limit=ROWS_MAX)
    nodes = (await nodes_of(visit, ROWS_MAX))["data"]
    own = [one for one in regions["data"] if one["provider_id"] in mine]
    arriving = [one for one in nodes if one["phase"] in ARRIVING]
    return visit.show(
        "owner/join.html",
        200 if problem is None else problem.status,
        has_provider=bool(mine),
        regions=[one for one in own if one["admission"] != "approved"],
        by_admission=[one for one in own if one["admission"] == "approved"],
        admissions=admissions["data"],
        code=code,
        problem=problem,
        arriving=[{"node": one, "name": machine(one), "steps": _steps(one)} for one in arriving],
        server=f"{visit.request.url.scheme}://{visit.request.url.netloc}",
    )


def _steps(node: Told) -> list[Step]:
    """The way of a node that joined: what is done, what is next."""
    path = f"/nodes/{node['node_id']}"
    order = ("joining", "confirmed", "provisioning", "maintenance")
    at = order.index(node["phase"])
    state = causes.state_of(node)

    def step(place: int, heading: str, says: str, path: str = "", name: str = "") -> Step:
        told = "done" if place < at else "now" if place == at else "later"
        return Step(heading, says, told, path if told == "now" else "", name)

    return [
        step(-1, "Join", "The machine used its code and signed with its own key."),
        step(
            0,
            "Compare the fingerprint",
            "The machine printed one. Is it the same here?",
            f"{path}/confirm",
            "Compare",
        ),
        step(
            1,
            "Be let in",
            "The operator looks at new machines; in a region without an operator you let it in.",
            f"{path}/admit",
            "Let it in",
        ),
        step(2, "Be set up", f"It reports by itself when it is ready. Now: {state.word}."),
        step(3, "Start it", "From then on it takes leases.", f"{path}/activate", "Activate"),
        step(4, "Set a price", "You see your part before it is published.", f"{path}/offer", ""),
    ]


async def show_admission(visit: Visit) -> Response:
    """`/nodes/new/{admission_id}`"""
    return await _admission(visit, None, None)


async def take_admission(visit: Visit) -> Response:
    """Record a step of it: firmware, the first start, or the code that lets it join."""
    path = f"/v1/admissions/{visit.params['admission_id']}"
    step = visit.form.get("step", "")
    try:
        if step in FIRMWARE:
            await visit.record(f"{path}/firmware", {"step": step})
        elif step == "installed":
            told = {"minion_id": visit.form.get("minion_id", "").strip()}
            await visit.record(f"{path}/installed", told)
        elif step == "code":
            return await _admission(visit, await visit.record(f"{path}/join-codes"), None)
        else:
            raise refused("invalid", "choose a step")
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _admission(visit, None, problem)
    return visit.to(f"/nodes/new/{visit.params['admission_id']}")


async def _admission(visit: Visit, code: Told | None, problem: Refused | None) -> Response:
    told = await visit.read(f"/v1/admissions/{visit.params['admission_id']}")
    return visit.show(
        "owner/admission.html",
        200 if problem is None else problem.status,
        told=told,
        steps=_admission_steps(told),
        firmware=[(step, FIRMWARE[step]) for step in told["steps_left"]],
        code=code,
        problem=problem,
        server=f"{visit.request.url.scheme}://{visit.request.url.netloc}",
    )


def _admission_steps(told: dict[str, Any]) -> list[Step]:
    """requested -> validated -> shipped -> firmware and first start -> installed -> joined."""
    order = ("requested", "validated", "shipped", "installed")
    at = order.index(told["state"]) + 1 if told["state"] in order else 0
    sent = f" Tracking: {told['tracking']}." if told.get("tracking") else ""
    rows = [
        ("Ask", f"{told['gpus']}{TIMES} {told['model']}, as you described it."),
        ("Be validated", "The operator looks whether the machine fits. Nothing for you to do."),
        ("Get the boot drive", f"The operator ships it.{sent}"),
        ("Set the firmware, start from the drive", "Each step is noted here when it is done."),
        ("Join", "With a code that works once, for ten minutes."),
    ]
    return [
        Step(heading, says, "done" if place < at else "now" if place == at else "later")
        for place, (heading, says) in enumerate(rows)
    ]
