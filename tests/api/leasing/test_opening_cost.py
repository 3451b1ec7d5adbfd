"""What the opening of a lease does not do, for it would cost every opening something."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.leasing import leases
from tests.scenes.server import Scene


def test_a_job_without_a_workspace_takes_no_thread_to_look_for_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for: list[Any] = []
    look = leases._workspace_refusal

    def looking(body: Any, call: Any) -> Any:
        looked_for.append(body)
        return look(body, call)

    monkeypatch.setattr(leases, "_workspace_refusal", looking)
    lease = scene.lease()
    assert (lease["state"], looked_for) == ("reserved", [])
    job = {
        "command": ["true"],
        "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "9000000"},
        "references": [{"kind": "workspace", "name": "0" * 64}],
    }
    refused = scene.renter.post("/v1/leases", {"job": job})
    assert refused.json()["code"] == "workspace_unknown"
    assert len(looked_for) == 1


def test_an_answer_of_the_desk_is_told_as_it_is_stored(scene: Scene) -> None:
    lease = scene.lease()
    with scene.service.connection() as connection:
        row = connection.execute(
            "SELECT body, position FROM public.command WHERE body LIKE %s",
            (f"%{lease['lease_id']}%".encode(),),
        ).fetchone()
    assert row is not None
    assert {**json.loads(bytes(row[0])), "position": row[1]} == lease
