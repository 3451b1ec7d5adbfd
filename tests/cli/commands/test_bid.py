"""`tallystick bid` against a server that really runs."""

from __future__ import annotations

import pytest

from tests.cli.test_remote import Server, server

__all__ = ["server"]


def test_requests_bids_and_prices_are_read_and_made_from_the_shell(server: Server) -> None:
    account, key = server.account()
    server.run("account", "deposit", account, "25", "--reference", "bid-1")
    asked = server.run(
        *("bid", "ask", "--command", "true", "--max-price", "3", "--auction", "60"),
        *("--session", "session-7", "--split", "module functions", "--json"),
        key=key,
    ).document
    shown = server.run("lease", "show", asked["lease_id"], "--json", key=key).document
    assert (shown["remoting_session_id"], shown["split_label"]) == ("session-7", "module functions")
    assert "module functions" in server.run("lease", "show", asked["lease_id"], key=key).out
    assert (asked["state"], asked["pricing"]) == ("requested", "reverse_auction/1")
    open_now = server.run("bid", "requests", "--json", key=key).document["data"]
    assert [one["lease_id"] for one in open_now] == [asked["lease_id"]]
    assert (
        server.run("bid", "list", "--lease", asked["lease_id"], "--json", key=key).document["data"]
        == []
    )
    standing = server.run(
        "bid", "ask", "--command", "true", "--max-price", "3", "--bid", "1.50", "--json", key=key
    ).document
    raised = server.run("bid", "set", standing["lease_id"], "1.60", "--json", key=key).document
    assert (raised["lease_id"], raised["bid"]["units"]) == (standing["lease_id"], "1600000")
    assert "waiting" in server.run("bid", "show", standing["lease_id"], key=key).out
    assert server.run("bid", "prices", "--json").document["data"] == []
    assert "second_price/1" in server.run("bid", "modules").out
    nobody = server.run("bid", "list", "--json", key=key)
    assert nobody.document["data"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "--max-price", "3"),
        ("ask", "--max-price", "3", "--command", "true", "--bid", "1", "--months", "1"),
        ("offer", "offer_1", "--reserved", "3:1.80"),
    ],
)
def test_what_cannot_be_meant_is_exit_2(server: Server, arguments: tuple[str, ...]) -> None:
    _, key = server.account()
    assert server.run("bid", *arguments, key=key).code == 2
