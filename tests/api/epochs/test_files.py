"""One node's row is found in an epoch file as reading the whole file finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.epochs import files as epoch_files
from domain.epochs.epoch_file import epoch_file, read_cut
from domain.epochs.settlement import Attested, NodeCut, Use, settle
from tests.domain.epochs.test_settlement import cut

# Names of nodes, accounts, sources and classes that look like each other.
FLEET = [
    NodeCut(
        f"node_{number}",
        f"node_{number + 1}",
        (Use("node_2", number, 1), Use(f"node_{number}", 1, 2)),
        attested=(Attested("node_3", 3, number, 5),),
    )
    for number in range(200)
]


@pytest.mark.parametrize("longest", [150, epoch_files.ROW_BYTES_MAX])
def test_a_row_is_found_wherever_it_stands(
    longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = epoch_files.epoch_path(tmp_path, 7)
    path.parent.mkdir()
    path.write_bytes(epoch_file(settle(cut(*FLEET))))
    monkeypatch.setattr(epoch_files, "ROW_BYTES_MAX", longest)
    found = [epoch_files.find_node(path, node.node_id) for node in FLEET]
    assert found == FLEET
    assert sorted(read_cut(path.read_bytes()).nodes) == sorted(FLEET)
    for nobody in ("node_", "node_200", 'node_1","node_2', "treasury"):
        assert epoch_files.find_node(path, nobody) is None


def test_rewards_are_read_piece_by_piece_whatever_accounts_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a piece ends, be it between a row and its comma."""
    names = ['"rewards":[["a","1"]', "\\", "],[", "é" * 20, *(f"acct_{n}" for n in range(99))]
    nodes = [
        NodeCut(f"n{n}", name, (Use("cash", n + 1, 1),), 10**12) for n, name in enumerate(names)
    ]
    whole = settle(cut(*nodes))
    assert len(whole.rewards) > 1
    path = epoch_files.epoch_path(tmp_path, 7)
    path.parent.mkdir()
    path.write_bytes(epoch_file(whole))
    for at_once in (*range(100, 400), epoch_files.REWARDS_AT_ONCE):
        monkeypatch.setattr(epoch_files, "REWARDS_AT_ONCE", at_once)
        assert tuple(epoch_files.rewards_in(path)) == whole.rewards, at_once
    nothing = settle(cut(unissued=0))
    path.write_bytes(epoch_file(nothing))
    assert list(epoch_files.rewards_in(path)) == []
    path.write_text('{"rewards":null}')
    with pytest.raises(ValueError, match="no rewards"):
        list(epoch_files.rewards_in(path))
