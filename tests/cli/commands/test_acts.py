"""Maker and checker at the command line: written by one, signed by two, sent once."""

from __future__ import annotations

from pathlib import Path

from tests.cli.commands.test_policy import governors
from tests.cli.test_remote import Server, server

__all__ = ["server"]


def test_a_large_deposit_is_written_signed_by_two_and_sent(server: Server, tmp_path: Path) -> None:
    anna, boris, _ = governors(server, tmp_path)
    opened = server.run("account", "create", "--kind", "party", "--json").document
    deposit = ("account", "deposit", opened["account_id"], "10001", "--reference", "wire 1")
    alone = server.run(*deposit)
    assert alone.code == 1
    assert "One person alone may move 10,000.00 CREDIT in 24 hours" in alone.err
    assert "--to-sign FILE" in alone.err
    file = tmp_path / "deposit.json"
    written = server.run(*deposit, "--to-sign", file, "--json")
    assert (written.code, written.document["body"]["reference"]) == (0, "wire 1")
    for key in (anna, boris):
        assert server.run(*deposit, "--signed", file).code == 1, "too few signed"
        shown = server.run("governor", "sign", file, "--key", key)
        assert shown.code == 0, shown
        assert 'body.amount.units: "10001000000"' in shown.err, "what is signed is shown"
    larger = ("account", "deposit", opened["account_id"], "90001", "--reference", "wire 1")
    assert server.run(*larger, "--signed", file).code == 2, "of another request"
    sent = server.run(*deposit, "--signed", file, "--json")
    assert (sent.code, sent.document["amount"]["units"]) == (0, "10001000000")
    again = server.run(*deposit, "--signed", file, "--json")
    assert again.document["position"] == sent.document["position"], "once"
    assert server.run("governor", "sign", tmp_path / "none.json", "--key", anna).code == 2
