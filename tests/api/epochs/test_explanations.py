"""Why a node got what it got: over HTTP and from the shell, from a sealed epoch of real work."""

from __future__ import annotations

import json

import pytest

from domain.duration import HOUR_US
from tests.scenes.server import Scene
from tests.scenes.work import seal_an_epoch_of_work


@pytest.fixture(scope="module")
def sealed(shared: Scene) -> Scene:
    """Epoch 1 with one lease hour, closed and sealed; epoch 2 is open."""
    seal_an_epoch_of_work(shared)
    return shared


def test_an_owner_reads_the_way_from_gpu_seconds_to_tokens(sealed: Scene) -> None:
    node_id = sealed.provider.node_id
    told = sealed.anybody.read(f"/v1/epochs/1/explain/{node_id}")
    epoch = sealed.anybody.read("/v1/epochs/1")
    compute = told["compute"]
    assert told["uses"] == [
        {"source": "cash", "burned": "0", "gpu_us": str(HOUR_US), "weight_ppm": 1_000_000}
    ]
    assert compute["weight"] == compute["all_weight"] == str(HOUR_US)
    assert compute["pool"] == compute["share"] == compute["paid"] == told["paid"]
    assert compute["paid"] == epoch["compute_pool"]
    assert (told["file_sha256"], told["cut_position"]) == (
        epoch["file_sha256"],
        epoch["cut_position"],
    )
    (rewarded,) = [
        one
        for one in sealed.anybody.read("/v1/epochs/1/rewards")["data"]
        if one["account_id"] == told["account_id"]
    ]
    assert rewarded["credited"] == told["paid"]
    assert any(reason.startswith("availability: ") for reason in told["reasons"])
    assert told["signals"] == {
        "concentration_ppm": 1_000_000,
        "related_ppm": 0,
        "raised": [],  # in its first weeks a node has the customers it has (users B19)
    }
    parts = {
        "gpu_us": str(HOUR_US),
        "counterparties": 1,
        "largest_ppm": 1_000_000,
        "related_ppm": 0,
        "raised": [],  # in its first weeks a node has the customers it has (users B19)
    }
    signals = sealed.anybody.read("/v1/epochs/1/signals")["data"]
    assert signals == [{"subject_id": node_id, **parts}]
    renters = sealed.operator.read("/v1/epochs/1/renter-signals")["data"]
    assert renters == [{"subject_id": sealed.renter.account_id, **parts}]
    assert sealed.anybody.get("/v1/epochs/1/renter-signals").status_code == 401
    assert json.dumps(told).count(sealed.renter.account_id) == 0, "customers are not named"


def test_what_cannot_be_explained_says_why(sealed: Scene) -> None:
    node_id = sealed.provider.node_id
    answers = {
        f"/v1/epochs/2/explain/{node_id}": (409, "epoch_state"),
        f"/v1/epochs/9/explain/{node_id}": (404, "epoch_unknown"),
        "/v1/epochs/1/explain/node_0": (404, "not_found"),
        "/v1/epochs/9/signals": (404, "epoch_unknown"),
    }
    for path, (status, code) in answers.items():
        response = sealed.anybody.get(path)
        assert (response.status_code, response.json()["code"]) == (status, code), path
