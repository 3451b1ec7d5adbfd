"""Free starts over HTTP: told to the executor, to the renter, on the bill, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest

from api.door.moments import moment
from domain.jobs.job import workload_hash
from tests.api.leasing.test_work import COMMAND, EXECUTOR, executor_of, work
from tests.scenes.server import Caller, Scene
from tests.scenes.work import accrue_now, run

S = 1_000_000


class Starts:
    """A market whose tariff makes the first minute of a start free."""

    def __init__(self, scene: Scene) -> None:
        assert scene.service.settings.environment == "production"
        self.scene, self.executor = scene, executor_of(scene, scene.provider)
        (first,) = scene.anybody.read("/v1/tariffs")["data"]
        kept = ("usage_fees", "provider_share_ppm", "burn_share_ppm", "federated")
        self.tariff = {
            "version": 2,
            "effective_from": first["effective_from"],
            "free_start": {"at_most_seconds": 60, "failed_per_hour": 2},
            **{name: first[name] for name in kept if name in first},
        }
        clock: Any = scene.clock
        clock.advance(S)
        self.clock = clock
        self.tariff["effective_from"] = moment(clock.now_us())
        told = scene.operator.made("/v1/tariffs", self.tariff)
        assert told["free_start"] == self.tariff["free_start"]

    def lease(self, kind: str = "endpoint", renter: Caller | None = None) -> str:
        """A lease of the first node; its path at the node."""
        lease = self.scene.lease(renter, job=work(kind=kind, env_refs=[]))
        return str(lease["lease_id"])

    def at(self, lease_id: str) -> str:
        return f"/v1/nodes/{self.scene.provider.node_id}/assignments/{lease_id}"

    def take_up(self, lease_id: str) -> dict[str, Any]:
        body = {
            "command": "start",
            "executor": EXECUTOR,
            "runner": "process",
            "workload_sha256": workload_hash(None, tuple(COMMAND), ()),
        }
        return self.executor.made(f"{self.at(lease_id)}/acknowledge", body)

    def fail(self) -> str:
        """The attack: 59 s of the device before the program says that it began."""
        lease_id = self.lease()
        assert self.take_up(lease_id)["free_start_us"] == 60 * S
        self.clock.advance(59 * S)
        self.executor.made(f"{self.at(lease_id)}/ready")
        self.clock.advance(S)
        self.scene.renter.made(f"/v1/leases/{lease_id}/close")
        return lease_id

    def end(self, lease_id: str, outcome: str) -> Any:
        body = {"executor": EXECUTOR, "outcome": outcome}
        return self.executor.post(f"{self.at(lease_id)}/ended", body)


@pytest.fixture
def starts(scene: Scene) -> Starts:
    return Starts(scene)


def test_from_the_third_failed_start_of_an_hour_on_none_is_free_and_then_again(
    starts: Starts,
) -> None:
    starts.fail()
    starts.fail()
    third = starts.lease()
    assert starts.take_up(third)["free_start_us"] == 0
    again = starts.take_up(third)
    assert again["free_start_us"] == 0, "a retry is told the same"
    another = starts.scene.account()
    starts.scene.deposit(another, 25_000_000)
    other = starts.lease(renter=another)
    assert starts.take_up(other)["free_start_us"] == 60 * S, "another account's are its own"
    for lease_id, who in ((third, starts.scene.renter), (other, another)):
        who.made(f"/v1/leases/{lease_id}/close")
    starts.clock.advance(3_600 * S)
    assert starts.take_up(starts.lease())["free_start_us"] == 60 * S


def test_what_the_node_declines_or_could_not_begin_is_not_charged_and_not_counted(
    starts: Starts,
) -> None:
    for _ in range(3):
        lease_id = starts.lease()
        assert starts.take_up(lease_id)["free_start_us"] == 60 * S
        starts.executor.made(f"{starts.at(lease_id)}/decline")
    lease_id = starts.lease()
    assert starts.take_up(lease_id)["free_start_us"] == 60 * S
    starts.clock.advance(60 * S)
    starts.executor.made(f"{starts.at(lease_id)}/ready")
    starts.clock.advance(30 * S)
    assert starts.end(lease_id, "not_started").status_code == 200
    lease = starts.scene.renter.read(f"/v1/leases/{lease_id}")
    assert (lease["close_code"], lease["closed_at"]) == (10_000, lease["opened_at"])
    assert lease["charge"]["units"] == "0"
    assert starts.take_up(starts.lease())["free_start_us"] == 60 * S


def test_the_bill_and_the_work_say_how_long_the_free_start_took(starts: Starts) -> None:
    lease_id = starts.lease("batch")
    starts.take_up(lease_id)
    starts.clock.advance(41 * S)
    starts.executor.made(f"{starts.at(lease_id)}/ready")
    lease = starts.scene.renter.read(f"/v1/leases/{lease_id}")
    told = starts.scene.renter.read(f"/v1/leases/{lease_id}/work")
    assert (told["start_us"], told["free_start_us"]) == (41 * S, 60 * S)
    starts.clock.advance(60 * S)
    starts.end(lease_id, "exited")
    run(starts.scene, lease, minutes=5)
    accrue_now(starts.scene, lease_id)
    month = lease["opened_at"][:7]
    bill = starts.scene.renter.read(
        f"/v1/accounts/{starts.scene.renter.account_id}/statements/{month}"
    )
    lines = [one for one in bill["leases"] if one["lease_id"] == lease_id]
    assert [one.get("free_start_us") for one in lines] == [str(41 * S)]
    assert [one["gpu_us"] for one in lines] == [str(60 * S)], "the minute that it ran, and no more"


@pytest.mark.parametrize(("name", "value"), [("at_most_seconds", 601), ("failed_per_hour", -1)])
def test_numbers_out_of_bounds_are_refused_and_name_the_field(
    starts: Starts, name: str, value: int
) -> None:
    wrong = {**starts.tariff, "version": 3}
    wrong["free_start"] = {**wrong["free_start"], name: value}
    refused = starts.scene.operator.post("/v1/tariffs", wrong)
    assert refused.status_code == 422
    assert name in refused.text
