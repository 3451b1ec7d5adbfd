"""A proposal rehearsed over HTTP, on the server's own epoch files."""

from __future__ import annotations

import shutil
from collections.abc import Generator

import pytest

from api.governance import policy_rehearsal
from domain.epochs.epoch_file import epoch_file
from domain.epochs.settlement import settle
from tests.cli.commands.test_rehearsal import FLEET
from tests.domain.epochs.test_settlement import RULED
from tests.domain.governance.test_rehearsal import history
from tests.scenes.server import Scene

PATH = "/v1/policies/dry-run"


@pytest.fixture
def sealed(shared: Scene) -> Generator[Scene, None, None]:
    """The market, with the files of two epochs where sealing puts them."""
    folder = shared.service.settings.data_dir / "epochs"
    folder.mkdir()
    for cut in history(RULED, [(FLEET, 0, {}), (FLEET, 0, {})]):
        (folder / f"{cut.epoch}.json").write_bytes(epoch_file(settle(cut)))
    yield shared
    shutil.rmtree(folder)


def test_a_proposal_is_rehearsed_as_by_the_command_and_only_where_the_past_is_short(
    sealed: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"document": policy_rehearsal.EXAMPLE, "limit": 1}
    told = sealed.operator.post(PATH, asked).json()
    assert (told["epochs"], told["holds"], told["is_same"]) == (2, True, False)
    assert [one["account_id"] for one in told["losers"]] == ["acct_a"]
    assert told["largest_difference"]["delta"]["units"].startswith("-")
    assert told["position"] > 0
    same = sealed.operator.post(PATH, {**asked, "from_epoch": 3}).json()
    assert (same["is_same"], same["winners"], same["losers"]) == (True, [], [])
    for document in ({}, {**policy_rehearsal.EXAMPLE, "compute_ppm": 1}):
        refused = sealed.operator.post(PATH, {"document": document})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    monkeypatch.setattr(policy_rehearsal, "BYTES_MAX", 1)
    refused = sealed.operator.post(PATH, asked)
    assert (refused.status_code, refused.json()["code"]) == (422, "rehearsal_too_large")
    assert sealed.renter.post(PATH, asked).status_code == 403
