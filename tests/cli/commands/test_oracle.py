"""`tallystick oracle` against a server that really runs."""

from __future__ import annotations

from api.door.moments import moment
from tallystick_client import Client
from tallystick_client.forms import ApiKeyAnswer
from tests.cli.test_remote import Server, server

__all__ = ["server"]


def feeder(server: Server) -> ApiKeyAnswer:
    """The key of a member of the operator's account that reports prices and does nothing else."""
    with Client(server.url, server.operator_key) as client:
        listed = client.list_accounts()["data"]
        account = next(one["account_id"] for one in listed if one["kind"] == "operator")
        made = client.invite_member(account, {"role": "member", "scopes": ["oracle:write"]})
    with Client(server.url) as invitee:
        return invitee.redeem_invitation({"code": made["code"]})


def test_sources_are_named_and_their_prices_become_one_price(server: Server) -> None:
    keys = {name: feeder(server) for name in "abc"}
    fed = [f"{name}={key['member_id']}" for name, key in keys.items()]
    named = server.run("oracle", "sources", *fed, "--json").document
    assert [one["source"] for one in named["sources"]] == ["a", "b", "c"]
    published = moment(server.service.clock.now_us() - 1_000_000)
    for source, price in (("a", "1.87"), ("b", "1.875"), ("c", "1.86")):
        words = ("oracle", "observe", source, price, "--published-at", published, "--json")
        assert server.run(*words).document["code"] == "price_source_foreign"
        seen = server.run(*words, key=keys[source]["key"]).document
        assert seen["price_micro_usd"] == int(price.ljust(5, "0").replace(".", "")) * 1_000
    shown = server.run("oracle", "show", "--json").document
    assert (shown["health"], shown["median_micro_usd"]) == ("healthy", 1_870_000)
    assert "1870000" in server.run("oracle", "show").out
    taken = server.run("oracle", "snapshot", "--json").document
    assert (taken["snapshot"], taken["median_micro_usd"]) == (1, 1_870_000)


def test_a_price_of_nobody_is_refused_and_one_that_is_no_number_is_not_sent(server: Server) -> None:
    published = moment(server.service.clock.now_us())
    words = ("oracle", "observe", "x", "1.87", "--published-at", published)
    assert server.run(*words, "--json").document["code"] == "price_source_unknown"
    assert server.run("oracle", "observe", "x", "much", "--published-at", published).code == 2
    assert server.run("oracle", "sources", "a").code == 2, "without the member that feeds it"
